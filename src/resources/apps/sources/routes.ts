import { z } from "zod";
import { ADDRESS_PERMISSION } from "../../../channels/entity.ts";
import { recordChannelAudit } from "../../../data/accounts/audit.ts";
import { recordChange } from "../../../data/changes.ts";
import { readDedupeChange } from "../../../data/channels/dedupe-change.ts";
import { listSourceTopics } from "../../../data/channels/topics.ts";
import type { ChannelRow } from "../../../data/tables.ts";
import type { Caller } from "../../../http/context.ts";
import { conflict, invalidParameters, notFound } from "../../../http/errors.ts";
import { deleted } from "../../../http/fields.ts";
import { formatCursor, newestQuery, pageQuerySchema, parseCursor } from "../../../http/page.ts";
import type { CompiledChannel } from "../../../ingest/compile-channel.ts";
import { createIsForgotten } from "../../../ingest/reconciled.ts";
import { findingUnder } from "../../../lib/findings.ts";
import { listOf, newestOf } from "../../kit/answer.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { channelParams, getChannel, getVisibleName } from "../app-channel.ts";
import { type AppScope, appScopeOf } from "../app-scope.ts";
import { placeFilters, selectChannels } from "../organization-channels.ts";
import { dryRun } from "./dry-run.ts";
import { readSources } from "./read-sources.ts";
import { renderCursor, renderPoll } from "./render.ts";
import {
  cursorSchema,
  dryRunResultSchema,
  dryRunSchema,
  listedSourceSchema,
  pollSchema,
  setCursorSchema,
  sourceSchema,
} from "./schema.ts";

const listQuerySchema = z.object({ ...placeFilters, ...newestQuery });

/** Routes for sources. A source is a channel that fetches events instead of receiving them. */
export const sources: Resource = {
  tag: "Sources",
  params: channelParams,
  routes(deps) {
    const { db, positions, clock } = deps;

    /** Returns the channel's source. @throws ApiError 404 if the channel does not exist or does not fetch events */
    async function getSource(caller: Caller, params: { readonly appId: string; readonly channelId: string }) {
      const row = await getChannel(db, deps.keyring, appScopeOf(caller, params), params.channelId);
      const cursor = deps.channelKinds.get(row.kind)?.cursor;
      if (!cursor) throw notFound("source");
      return { row, cursor };
    }

    async function getActiveChannel({ number }: ChannelRow): Promise<CompiledChannel> {
      const channel = await deps.findCompiledChannel(number);
      if (!channel) throw notFound("source");
      return channel;
    }

    async function findReconciled(scope: AppScope, { config }: ChannelRow) {
      if (typeof config.reconciles !== "string") return undefined;
      const row = await getChannel(db, deps.keyring, scope, config.reconciles);
      const channel = await getActiveChannel(row);
      return { channel, isForgotten: createIsForgotten(channel, readDedupeChange(row)) };
    }

    /**
     * Sets the source's cursor, or resets it if `value` is `undefined`. Redis is written inside the PostgreSQL
     * transaction, so both writes fail together, except after a crash between them.
     */
    async function setCursor(
      caller: Caller,
      row: ChannelRow,
      value: string | undefined,
      version?: number,
    ): Promise<void> {
      await db.transaction().execute(async (trx) => {
        await recordChange(trx, { kind: "source", key: String(row.number) });
        await recordChannelAudit(trx, caller, "update", row, clock(), ["cursor"]);
        const topics = await listSourceTopics(trx, row);
        const ref = { number: row.number, topics };
        const written = await positions.set(ref, value, version === undefined ? {} : { version });
        if (written === undefined)
          throw conflict("The cursor has changed since the given version. Read the cursor again and retry.");
      });
    }

    return [
      defineRoute({
        at: "GET /sources",
        operation: "listSources",
        summary: "List the sources of all apps",
        description: "Lists the channels that fetch their events, with the newest channel first.",
        permission: "apps.read",
        query: listQuerySchema,
        answer: newestOf(listedSourceSchema),
        async handle({ caller: { organizationId }, query: { limit, cursor, ...filters } }) {
          const kinds = [...deps.channelKinds].flatMap(([kind, { cursor }]) => (cursor ? [kind] : []));
          const matching = selectChannels(deps, organizationId, { ...filters, kinds });
          const { total } = await matching
            .select(({ fn }) => fn.countAll<number>().as("total"))
            .executeTakeFirstOrThrow();
          const after = parseCursor(cursor);
          const rows = await matching
            .selectAll()
            .$if(after !== undefined, (query) => query.where("number", "<", after?.score ?? 0))
            .orderBy("number", "desc")
            // One more than the page shows whether another page follows.
            .limit(limit + 1)
            .execute();
          const page = rows.slice(0, limit);
          const sources = await readSources(deps, page);
          const last = rows.length > limit ? page.at(-1) : undefined;
          return {
            items: page.flatMap(({ appId, uid: channelUid, kind }, at) => {
              const source = sources[at];
              return source === undefined ? [] : [{ ...source, appId, channelUid, kind }];
            }),
            total,
            next: last && formatCursor({ score: last.number, id: "source" }),
          };
        },
      }),
      defineRoute({
        at: "GET /apps/:appId/channels/:channelId/source",
        operation: "getSource",
        summary: "Get the source of a channel",
        description:
          "Only channels that fetch their events have a source. For other channels, the response is 404.",
        answer: sourceSchema,
        async handle({ caller, params }) {
          const { row } = await getSource(caller, params);
          const [source] = await readSources(deps, [row]);
          if (source === undefined) throw notFound("source");
          return source;
        },
      }),
      defineRoute({
        at: "GET /apps/:appId/channels/:channelId/source/polls",
        operation: "listPolls",
        summary: "List the newest polls of a source",
        description: "Lists the last 20 polls, newest first. The list is empty for a stream.",
        query: pageQuerySchema,
        answer: listOf(pollSchema),
        async handle({ caller, params, query: { limit, offset } }) {
          const { row } = await getSource(caller, params);
          const polls = await deps.states.listPolls(row.number);
          return { items: polls.slice(offset, offset + limit).map(renderPoll), total: polls.length };
        },
      }),
      defineRoute({
        at: "GET /apps/:appId/channels/:channelId/source/cursor",
        operation: "getSourceCursor",
        summary: "Get the cursor of a source",
        answer: cursorSchema,
        async handle({ caller, params }) {
          const { row, cursor } = await getSource(caller, params);
          return renderCursor(cursor.show, await positions.read(row.number));
        },
      }),
      defineRoute({
        at: "PUT /apps/:appId/channels/:channelId/source/cursor",
        operation: "setSourceCursor",
        summary: "Set the cursor of a source",
        description:
          "Stops the current run of the source, which then writes no more events. The next run starts at the new cursor within two seconds. If you set the cursor back, events are fetched again. Events whose ids are still remembered are not published again.",
        body: setCursorSchema,
        answer: cursorSchema,
        conflict: "the cursor's current version is not `version`",
        async handle({ caller, params, body }) {
          const { row, cursor } = await getSource(caller, params);
          const parsed = cursor.parse(body.value, (await getActiveChannel(row)).kindConfig);
          if (!parsed.ok) throw invalidParameters(parsed.error.map((one) => findingUnder("value", one)));
          await setCursor(caller, row, parsed.value, body.version);
          return renderCursor(cursor.show, await positions.read(row.number));
        },
      }),
      defineRoute({
        at: "DELETE /apps/:appId/channels/:channelId/source/cursor",
        operation: "resetSourceCursor",
        summary: "Reset the cursor of a source",
        description:
          "The source restarts as if it had never run, at the position that its `startAt` setting defines.",
        answer: deleted,
        reveals: ADDRESS_PERMISSION,
        async handle({ caller, params }) {
          const { row } = await getSource(caller, params);
          await setCursor(caller, row, undefined);
          return { id: getVisibleName(deps.keyring, caller, row) };
        },
      }),
      defineRoute({
        at: "POST /apps/:appId/channels/:channelId/source/dry-run",
        operation: "dryRunSource",
        summary: "Dry-run the next poll of a source",
        description:
          "Requests at most one page from the server and shows how its items would be processed. Publishes no events and does not change the cursor.",
        body: dryRunSchema,
        answer: dryRunResultSchema,
        conflict: "the source is a stream, which cannot be polled",
        async handle({ caller, params, body, c }) {
          const { row, cursor } = await getSource(caller, params);
          const polled = deps.runtimes.get(row.kind)?.polled;
          if (!polled) throw conflict("The source is a stream. Only polling sources support a dry run.");
          const channel = await getActiveChannel(row);
          const parsed =
            body.cursor === undefined ? undefined : cursor.parse(body.cursor, channel.kindConfig);
          if (parsed?.ok === false)
            throw invalidParameters(parsed.error.map((one) => findingUnder("cursor", one)));
          const stored = await positions.read(row.number);
          const from = { ...stored, ...(parsed && { value: parsed.value }) };
          const reconciled = await findReconciled(appScopeOf(caller, params), row);
          const { signal } = c.req.raw;
          return dryRun(deps, { polled, show: cursor.show, channel, reconciled, from, signal });
        },
      }),
    ];
  },
};
