import type { Command } from "commander";
import { formatPath } from "../../client/api.ts";
import { appOptions, type Client, createAction, examples } from "../../client/command.ts";
import type { Channel, Source } from "../../client/entities.ts";
import type { CommandContext } from "../../command-context.ts";
import { usageError } from "../../exit.ts";
import type { Column } from "../../output/table.ts";

type ListedSource = Source & { readonly uid: string };

const COLUMNS: readonly Column<ListedSource>[] = [
  { title: "channel", value: ({ uid }) => uid, whole: true },
  {
    title: "state",
    value: ({ state, stateReason }) => (stateReason === null ? state : `${state} (${stateReason})`),
    color: ({ state }) => (state === "error" || state === "needsReauth" ? "red" : undefined),
  },
  { title: "silent", value: ({ silent }) => (silent ? "silent" : ""), color: () => "yellow" },
  { title: "last event", value: ({ lastEventAt }) => lastEventAt },
  { title: "next", value: ({ nextPollAt }) => nextPollAt },
  { title: "lag ms", value: ({ lagMs }) => lagMs },
  { title: "last error", value: ({ lastError }) => lastError?.message },
];

const FETCHING = new Set(["sse", "polling"]);

export function define(command: Command, context: CommandContext): void {
  appOptions(command.command("list", { isDefault: true }))
    .description("List the sources of an app")
    .action(
      createAction(context, async ({ api, output, app }) => {
        const { id } = await app();
        const { items } = await api.list<Channel>(formatPath("apps", id, "channels"));
        const sources: ListedSource[] = [];
        for (const { uid, kind } of items) {
          if (!FETCHING.has(kind)) continue;
          sources.push({
            uid,
            ...(await api.get<Source>(formatPath("apps", id, "channels", uid, "source"))),
          });
        }
        output.list(sources, COLUMNS, "The app has no sources.");
      }),
    );
  appOptions(command.command("get <channel>"))
    .description("Show a source")
    .action(
      createAction<[string]>(context, async ({ api, output, app }, [named]) => {
        output.one(await api.get<Source>(await sourcePath(app, named)));
      }),
    );
  appOptions(command.command("cursor <channel>"))
    .description("Show a source's cursor, or set it")
    .option("--set <json>", "set the cursor; later items are fetched again")
    .option("--reset", "start again at `startAt`")
    .action(
      createAction<[string], CursorOptions>(
        context,
        async ({ api, output, app }, [named], { set, reset }) => {
          if (set !== undefined && reset) throw usageError("--set and --reset cannot be combined.");
          const path = `${await sourcePath(app, named)}/cursor`;
          if (reset) output.one(await api.delete(path));
          else if (set === undefined) output.one(await api.get(path));
          else output.one(await api.put(path, { value: parseJson(set) }));
        },
      ),
    );

  examples(command, [
    ["inlet sources", "the state of all sources"],
    ["inlet sources cursor orders", "show a cursor"],
    [`inlet sources cursor orders --set '{"sequence": "42"}'`, "fetch again from a cursor"],
  ]);
}

interface CursorOptions {
  readonly set?: string;
  readonly reset?: boolean;
}

const sourcePath = async (app: Client["app"], named: string): Promise<string> =>
  formatPath("apps", (await app()).id, "channels", named, "source");

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw usageError(`${text} is not JSON.`);
  }
}
