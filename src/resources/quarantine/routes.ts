import { Hono } from "hono";
import type { QuarantineFilter, QuarantineStore } from "../../bus/quarantine.ts";
import type { QuarantinedItem } from "../../bus/quarantine-record.ts";
import type { Queryable } from "../../data/database.ts";
import type { ApiEnv } from "../../http/context.ts";
import { answerList } from "../../http/page.ts";
import { conflict, invalidParameters, notFound } from "../../http/problem.ts";
import { UnavailableError } from "../../lib/errors.ts";
import type { Log } from "../../log.ts";
import { type AppScope, appScopeOf, requireApp } from "../app-scope.ts";
import { type PlainResource, parseBody, parseQuery, pathParam } from "../plain.ts";
import { findChannelNumbers, hasChannel } from "./queries.ts";
import { type RedriveDeps, redriveItem } from "./redrive.ts";
import {
  itemAnswerOf,
  listQuerySchema,
  type RedriveAnswer,
  recordAnswerOf,
  redriveManySchema,
  redriveSchema,
  unavailableAnswer,
} from "./schema.ts";

export interface QuarantineDeps extends RedriveDeps {
  readonly db: Queryable;
  readonly quarantine: Pick<QuarantineStore, "list" | "find" | "delete">;
  readonly log: Log;
}

interface Filters {
  readonly channelId?: string | undefined;
  readonly reason?: QuarantineFilter["reason"] | undefined;
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

export const quarantine: PlainResource<QuarantineDeps> = {
  path: "/apps/:appId/quarantine",
  create(deps) {
    const { db, quarantine } = deps;

    async function filterOf(scope: AppScope, filters: Filters): Promise<QuarantineFilter> {
      const { organizationId } = scope;
      await requireApp(db, scope);
      const channelNumbers = await findChannelNumbers(db, scope, filters.channelId);
      if (!channelNumbers) throw notFound("channel");
      const { reason, from, to } = filters;
      return {
        organizationId,
        channelNumbers,
        ...(reason === undefined ? {} : { reason }),
        ...(from === undefined ? {} : { fromMs: from }),
        ...(to === undefined ? {} : { toMs: to }),
      };
    }

    async function findItem(scope: AppScope, id: string): Promise<QuarantinedItem> {
      // What is not of this form cannot name a record, and must not become part of a key.
      const found = isRecordId(id) ? await quarantine.find(scope.organizationId, id) : undefined;
      const isOurs = found?.record.appId === scope.appId;
      if (!found || !isOurs || !(await hasChannel(db, scope, found.record.channelNumber))) {
        throw notFound("quarantined item");
      }
      return found;
    }

    return new Hono<ApiEnv>()
      .get("/", async (c) => {
        const { limit, offset, ...filters } = parseQuery(c, listQuerySchema);
        const filter = await filterOf(appScopeOf(c), filters);
        const { records, total } = await quarantine.list(filter, { limit, offset });
        return answerList(c, { items: records.map(recordAnswerOf), total });
      })
      .post("/redrive", async (c) => {
        const { limit, ...filters } = await parseBody(c, redriveManySchema);
        const filter = await filterOf(appScopeOf(c), filters);
        const { records } = await quarantine.list(filter, { limit, offset: 0 });
        const ids = records.map(({ id }) => id);
        return c.json(await redriveAll(deps, filter.organizationId, ids, c.req.raw.signal));
      })
      .get("/:id", async (c) => c.json(itemAnswerOf(await findItem(appScopeOf(c), pathParam(c, "id")))))
      .delete("/:id", async (c) => {
        const scope = appScopeOf(c);
        const { record } = await findItem(scope, pathParam(c, "id"));
        if (!(await quarantine.delete(scope.organizationId, record.id))) throw notFound("quarantined item");
        return c.json({ id: record.id });
      })
      .post("/:id/redrive", async (c) => {
        const { asNewId } = await parseBody(c, redriveSchema);
        const found = await findItem(appScopeOf(c), pathParam(c, "id"));
        if (asNewId && found.record.reason !== "id_conflict") {
          throw invalidParameters([{ path: "asNewId", message: "is for an item of reason id_conflict" }]);
        }
        const answer = await redriveItem(deps, found, { asNewId, signal: c.req.raw.signal });
        if (answer.status === "refused") throw conflict(answer.message ?? "The item cannot be re-driven.");
        return c.json(answer);
      });
  },
};

const isRecordId = (id: string): boolean => /^[A-Za-z0-9_]{1,64}$/.test(id);

/** In order of arrival, one after the other, so that their events come in that order; ends where the bus does not answer. */
async function redriveAll(
  deps: QuarantineDeps,
  organizationId: string,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<readonly RedriveAnswer[]> {
  const answers: RedriveAnswer[] = [];
  for (const [index, id] of ids.entries()) {
    try {
      const found = await deps.quarantine.find(organizationId, id);
      // Deleted or re-driven by another since it was listed.
      if (!found) continue;
      answers.push(await redriveItem(deps, found, { asNewId: false, signal }));
    } catch (error) {
      if (!(error instanceof UnavailableError) || answers.length === 0) throw error;
      deps.log.warn({ err: error }, "a re-drive of many ends before its end");
      answers.push(...ids.slice(index).map(unavailableAnswer));
      break;
    }
  }
  return answers;
}
