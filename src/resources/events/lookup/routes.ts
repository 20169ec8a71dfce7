import { z } from "zod";
import { holds } from "../../../http/callers/authorize.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { matchSchema } from "./match.ts";
import { findRows } from "./rows.ts";
import {
  findDeliveries,
  findEvents,
  findQuarantinedItem,
  MAX_SEARCHED,
  MAX_SEARCHED_CHANNELS,
} from "./stored.ts";

const querySchema = z.object({
  id: z.string().min(1).max(1_024).meta({
    description:
      "Id of an entity, uid of an app, blueprint or channel, id of a request or event, or an event as `<topic>/<entry id>`.",
    example: "req_01j9z3k4m5n6p7q8r9s0t1v",
  }),
});

const lookupSchema = z
  .object({ matches: z.array(matchSchema) })
  .meta({ id: "Lookup", description: "The entities that have an id. The list is empty if there are none." });

/** Finds the entity with an id from a log line, an error message or the dashboard of a provider. */
export const lookup: Resource = {
  tag: "Lookup",
  routes: (deps) => [
    defineRoute({
      at: "GET /lookup",
      operation: "lookUp",
      summary: "Find entities by any id",
      description: `Finds entities of the organization by any id. Shows only kinds of entities that the caller may read.\n\nDeliveries are found by their own id, by the id of their request, or by the id of one of their events, as long as they are recorded. Events are found by topic and entry id, or by their id. Ids that Inlet has created are found among all retained events, and ids of senders among the newest ${MAX_SEARCHED}. A search covers at most ${MAX_SEARCHED_CHANNELS} channels and topics.`,
      permission: null,
      query: querySchema,
      answer: lookupSchema,
      async handle({ caller, query: { id } }) {
        const { organizationId } = caller;
        const [rows, deliveries, items, events] = await Promise.all([
          findRows(deps.db, caller, id),
          holds(caller, "deliveries.read") ? findDeliveries(deps, organizationId, id) : [],
          holds(caller, "apps.read") ? findQuarantinedItem(deps, organizationId, id) : [],
          holds(caller, "apps.read") ? findEvents(deps, organizationId, id) : [],
        ]);
        return { matches: [...rows, ...deliveries, ...items, ...events] };
      },
    }),
  ],
};
