import type { Command } from "commander";
import type { ListedSource, PollEntity } from "../../../resources/apps/sources/schema.ts";
import { showAppUids } from "../../client/app.ts";
import { collect, describeIncomplete } from "../../client/collect.ts";
import { appOptions, declareSubcommands, examples, parseJson } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { EXIT, usageError } from "../../exit.ts";
import type { Column } from "../../output/table.ts";

const COLUMNS: readonly Column<ListedSource>[] = [
  { title: "app", value: ({ appId }) => appId, isOptional: true },
  { title: "channel", value: ({ channelUid }) => channelUid },
  {
    title: "health",
    value: ({ health }) => health,
    colors: { healthy: "green", retrying: "yellow", failing: "red" },
  },
  {
    title: "state",
    value: ({ state, stateReason }) => (stateReason === null ? state : `${state} (${stateReason})`),
  },
  {
    title: "silent",
    value: ({ silent }) => (silent ? "silent" : ""),
    colors: { "*": "yellow" },
    isOptional: true,
  },
  { title: "last event", value: ({ lastEventAt }) => lastEventAt },
  { title: "next", value: ({ nextPollAt }) => nextPollAt, isOptional: true },
  { title: "last wake", value: ({ wakes }) => wakes?.lastAt ?? null, isOptional: true },
  { title: "lag ms", value: ({ lagMs }) => lagMs },
  {
    title: "missed",
    isOptional: true,
    value: ({ reconcile }) => (reconcile?.missed ? `${reconcile.missed.count} recovered or listed` : ""),
    colors: { "*": "yellow" },
  },
  { title: "last error", value: ({ lastError }) => lastError?.message, wraps: true },
];

const POLL_COLUMNS: readonly Column<PollEntity>[] = [
  { title: "time", value: ({ at }) => at },
  { title: "ms", value: ({ durationMs }) => durationMs },
  { title: "requests", value: ({ requests }) => requests, isOptional: true },
  { title: "method", value: ({ method }) => method, isOptional: true },
  { title: "status", value: ({ status }) => status },
  { title: "items", value: ({ items }) => items },
  { title: "published", value: ({ published }) => published },
  { title: "error", value: ({ error }) => error, colors: { "*": "red" } },
];

export function define(command: Command, context: CommandContext): void {
  const part = declareSubcommands(command, context, appOptions);

  part("list", "List the sources of an app or of all apps", async ({ api, output, selectedApp }) => {
    const appId = (await selectedApp())?.id;
    const { items: found, failure } = await collect(api.newestItems<ListedSource>("/sources", { appId }));
    // Earlier versions printed the channel as `uid`.
    const items = found.map((source) => ({ uid: source.channelUid, ...source }));
    if (items.length > 0 || failure === undefined)
      output.list(items, await showAppUids({ api, output }, items, COLUMNS), "There are no sources.");
    if (failure === undefined) return EXIT.done;
    output.note(describeIncomplete(items.length, "sources", failure), "yellow");
    return failure.exitCode;
  });
  part<[string]>("get <channel>", "Show a source", async ({ api, appPath }, [named]) =>
    api.get(await appPath("channels", named, "source")),
  );
  part<[string]>("polls <channel>", "List the last 20 polls", async ({ api, appPath, output }, [named]) => {
    const { items } = await api.list<PollEntity>(await appPath("channels", named, "source", "polls"));
    output.list(items, POLL_COLUMNS, "There are no polls.");
  });
  part<[string], CursorOptions>(
    "cursor <channel>",
    "Show a source's cursor, or set it",
    async ({ api, appPath }, [named], { set, reset }) => {
      if (set !== undefined && reset) throw usageError("--set and --reset cannot be combined.");
      const path = await appPath("channels", named, "source", "cursor");
      if (reset) return api.delete(path);
      return set === undefined ? api.get(path) : api.put(path, { value: parseJson(set) });
    },
  )
    .option("--set <json>", "set the cursor; later items are fetched again")
    .option("--reset", "start again at `startAt`");

  examples(command, [
    ["inlet sources", "the state of all sources"],
    ["inlet sources polls orders", "the last polls, with their status and items"],
    ["inlet sources cursor orders", "show a cursor"],
    [`inlet sources cursor orders --set '{"sequence": "42"}'`, "fetch again from a cursor"],
  ]);
}

interface CursorOptions {
  readonly set?: string;
  readonly reset?: boolean;
}
