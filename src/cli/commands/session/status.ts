import type { Command } from "commander";
import { formatPath } from "../../client/api.ts";
import { apiOptions, type Client, createAction, examples } from "../../client/command.ts";
import type { App, Channel, Subscription } from "../../client/entities.ts";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../exit.ts";
import type { Color } from "../../output/table.ts";

interface Ready {
  readonly status: string;
  readonly checks?: Readonly<Record<string, { readonly ok: boolean; readonly reason?: string }>>;
}

interface AppStatus {
  readonly app: string;
  readonly uid: string;
  readonly channels: number;
  readonly channelsNotActive: number;
  readonly subscriptions: number;
  readonly subscriptionsFailing: number;
  readonly lag: number | null;
  readonly deadLetters: number | null;
  readonly quarantined: number;
}

export function define(command: Command, context: CommandContext): void {
  apiOptions(command).action(
    createAction(context, async ({ api, output }: Client) => {
      const response = await api.open("/../readyz");
      const { status, checks = {} } = (await response.json().catch(() => ({ status: "unknown" }))) as Ready;
      const failing = Object.entries(checks).filter(([, { ok }]) => !ok);
      const isReady = status === "ready";
      const { items: apps } = await api.list<App>("/apps");
      const rows: AppStatus[] = [];
      for (const app of apps) rows.push(await statusOf(api, app));
      if (output.isJson) output.one({ url: api.baseUrl, status, checks, apps: rows });
      else {
        const word = output.paint(isReady ? "green" : "red", isReady ? "ready" : status);
        output.say(`${api.baseUrl} is ${word}.`);
        for (const [name, { reason = "" }] of failing) output.note(`  ${name}: ${reason}`);
        output.say("");
        const alarming =
          (count: (row: AppStatus) => number | null, color: Color) =>
          (row: AppStatus): Color | undefined =>
            (count(row) ?? 0) > 0 ? color : undefined;
        output.list(
          rows,
          [
            { title: "app", value: ({ app }) => app, whole: true },
            { title: "uid", value: ({ uid }) => uid },
            { title: "channels", value: ({ channels }) => channels },
            {
              title: "not active",
              value: ({ channelsNotActive }) => channelsNotActive,
              color: alarming(({ channelsNotActive }) => channelsNotActive, "yellow"),
            },
            { title: "subscriptions", value: ({ subscriptions }) => subscriptions },
            {
              title: "failing",
              value: ({ subscriptionsFailing }) => subscriptionsFailing,
              color: alarming(({ subscriptionsFailing }) => subscriptionsFailing, "red"),
            },
            { title: "lag", value: ({ lag }) => lag },
            {
              title: "dead letters",
              value: ({ deadLetters }) => deadLetters,
              color: alarming(({ deadLetters }) => deadLetters, "red"),
            },
            {
              title: "quarantine",
              value: ({ quarantined }) => quarantined,
              color: alarming(({ quarantined }) => quarantined, "yellow"),
            },
          ],
          "There is no app yet.",
        );
      }
      return isReady ? EXIT.done : EXIT.unavailable;
    }),
  );
  examples(command, [
    ["inlet status", "exits with 4 if the gateway is not ready"],
    ["inlet status -o json --url http://127.0.0.1:8080", "JSON for a program"],
  ]);
}

async function statusOf(api: Client["api"], { id, uid }: App): Promise<AppStatus> {
  const [channels, subscriptions, quarantine] = await Promise.all([
    api.list<Channel>(formatPath("apps", id, "channels")),
    api.list<Subscription>(formatPath("apps", id, "subscriptions")),
    api.list<object>(formatPath("apps", id, "quarantine"), {}, 1),
  ]);
  const sum = (of: (subscription: Subscription) => number | null): number | null =>
    subscriptions.items.reduce<number | null>((total, each) => {
      const count = of(each);
      return total === null || count === null ? null : total + count;
    }, 0);
  return {
    app: id,
    uid,
    channels: channels.total,
    channelsNotActive: channels.items.filter(({ state }) => state !== "active").length,
    subscriptions: subscriptions.total,
    subscriptionsFailing: subscriptions.items.filter(({ state }) => state === "failing").length,
    lag: sum(({ lag }) => lag),
    deadLetters: sum(({ deadLetters }) => deadLetters),
    quarantined: quarantine.total,
  };
}
