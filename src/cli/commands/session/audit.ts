import type { Command } from "commander";
import { apiOptions, createAction, examples } from "../../client/command.ts";
import { formatTime, timeOptions } from "../../client/times.ts";
import type { CommandContext } from "../../command-context.ts";
import type { Column } from "../../output/table.ts";

interface AuditRecord {
  readonly at: string;
  readonly sentence: string;
}

const COLUMNS: readonly Column<AuditRecord>[] = [
  { title: "at", value: ({ at }) => at },
  { title: "action", value: ({ sentence }) => sentence, wraps: true },
];

const DAY_MS = 86_400_000;

interface AuditOptions {
  readonly entity?: string;
  readonly id?: string;
  readonly since?: number;
  readonly until?: number;
}

export function define(command: Command, context: CommandContext): void {
  timeOptions(apiOptions(command), { fallback: " (default: 24h)" })
    .option("--entity <kind>", "only entries about this kind of entity, such as apiKey")
    .option("--id <id>", "only entries about the entity with this id")
    .action(
      createAction<[], AuditOptions>(context, async ({ api, output }, _, { entity, id, since, until }) => {
        const from = formatTime(since ?? Date.now() - DAY_MS);
        const query = { entity, entityId: id, from, to: formatTime(until) };
        const { items } = await api.list<AuditRecord>("/audit", query);
        output.list(items, COLUMNS, "No entries.");
        return undefined;
      }),
    );
  examples(command, [
    ["inlet audit", "who changed what in the last 24 hours"],
    ["inlet audit --entity connection --since 7d", "changes of connections"],
  ]);
}
