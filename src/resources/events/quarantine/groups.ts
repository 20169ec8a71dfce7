import { z } from "zod";
import type { QuarantineFilter, QuarantineStore } from "../../../bus/quarantine/quarantine.ts";
import type { QuarantineRecord } from "../../../bus/quarantine/quarantine-record.ts";
import { QUARANTINE_REASONS } from "../../../event/outcome.ts";
import { timestamp } from "../../../http/fields.ts";
import { formatTimestamp } from "../../../lib/clock.ts";
import { type AppScope, appScopeOf } from "../../apps/app-scope.ts";
import { defineRoute, type Route } from "../../kit/route.ts";
import { type Filters, filters } from "./schema.ts";

/** Maximum number of items to group. The newest matching items are used. */
const MAX_GROUPED = 2_000;

const groupsSchema = z
  .object({
    matched: z.int().meta({ description: "Number of items that match the filters." }),
    examined: z.int().meta({
      description: `Number of items in the groups. Only the newest ${MAX_GROUPED} matching items are grouped.`,
    }),
    groups: z.array(
      z.object({
        channelUid: z.string(),
        reason: z.enum(QUARANTINE_REASONS),
        definition: z.string().nullable().meta({
          description: "Type of the first definition that failed. Null if the reason names no definition.",
        }),
        items: z.int().meta({ description: "Number of items." }),
        arrivals: z
          .int()
          .meta({ description: "Number of arrivals. An item that arrives again counts each time." }),
        firstAt: timestamp,
        lastAt: timestamp,
      }),
    ),
  })
  .meta({
    id: "QuarantineGroups",
    description: "Quarantined items grouped by channel, reason and definition.",
  });

/** Groups quarantined items by cause, because a few causes are usually behind many items. */
export const groups = (
  { quarantine }: { readonly quarantine: Pick<QuarantineStore, "list"> },
  filterOf: (scope: AppScope, filters: Filters) => Promise<QuarantineFilter>,
): Route =>
  defineRoute({
    at: "GET /apps/:appId/quarantine/groups",
    operation: "groupQuarantine",
    summary: "Count quarantined items by reason and definition",
    description:
      "Each group has the times of its first and last arrival. The group with the latest arrival comes first.",
    query: z.object(filters),
    answer: groupsSchema,
    async handle({ caller, params, query }) {
      const filter = await filterOf(appScopeOf(caller, params), query);
      const { total } = await quarantine.list(filter, { limit: 0, offset: 0 });
      const page = { limit: MAX_GROUPED, offset: Math.max(0, total - MAX_GROUPED) };
      const { records } = await quarantine.list(filter, page);
      const byKind = Map.groupBy(records, ({ channelUid, reason, definitions }) =>
        JSON.stringify([channelUid, reason, definitions[0]]),
      );
      const found = [...byKind.values()].map(summarize).sort((a, b) => b.lastAtMs - a.lastAtMs);
      return {
        matched: total,
        examined: records.length,
        groups: found.map(({ firstAtMs, lastAtMs, ...group }) => ({
          ...group,
          firstAt: formatTimestamp(firstAtMs),
          lastAt: formatTimestamp(lastAtMs),
        })),
      };
    },
  });

function summarize(records: readonly QuarantineRecord[]) {
  const [first] = records;
  if (first === undefined) throw new Error("a group of quarantine records is empty");
  const { channelUid, reason, definitions } = first;
  return {
    channelUid,
    reason,
    definition: definitions[0] ?? null,
    items: records.length,
    arrivals: records.reduce((sum, { count }) => sum + count, 0),
    firstAtMs: Math.min(...records.map(({ firstAtMs }) => firstAtMs)),
    lastAtMs: Math.max(...records.map(({ lastAtMs }) => lastAtMs)),
  };
}
