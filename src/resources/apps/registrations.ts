import { z } from "zod";
import { canSeeAddresses } from "../../channels/entity.ts";
import { recordAudit, recordChannelAudit } from "../../data/accounts/audit.ts";
import { openContents } from "../../data/registrations/registration-contents.ts";
import { REGISTRATION_STATES } from "../../data/registrations/registration-table.ts";
import {
  adoptRegistrations,
  currentRegistration,
  isAdopted,
  type RegistrationRow,
  requestAction,
} from "../../data/registrations/registrations.ts";
import type { ChannelRow } from "../../data/tables.ts";
import type { Caller } from "../../http/context.ts";
import { conflict, notFound } from "../../http/errors.ts";
import { deleted, timestamp } from "../../http/fields.ts";
import { pageQuerySchema } from "../../http/page.ts";
import { formatTimestamp } from "../../lib/clock.ts";
import { HIDDEN } from "../../lib/secrets/redact.ts";
import { findRegistration } from "../../registrations/find-registration.ts";
import { toRegisteredChannel } from "../../registrations/registrar.ts";
import { renderSteps } from "../../registrations/render-step.ts";
import { listOf } from "../kit/answer.ts";
import { listPage } from "../kit/list-page.ts";
import { pathId } from "../kit/params.ts";
import { requireOperator } from "../kit/require-operator.ts";
import type { Resource } from "../kit/resource.ts";
import { defineRoute } from "../kit/route.ts";
import { channelParams, getChannel } from "./app-channel.ts";
import { appScopeOf } from "./app-scope.ts";

const registrationSchema = z
  .object({
    id: z
      .string()
      .nullable()
      .meta({ description: "Null if the channel has no registration.", example: null }),
    appId: z.string(),
    channelUid: z.string(),
    preset: z.string().nullable(),
    target: z.string().nullable(),
    connectionId: z.string().nullable(),
    state: z.enum(["none", "suspended", ...REGISTRATION_STATES]).meta({
      description:
        "`none`: the channel asks for no registration. `creating`: the provider has not confirmed it yet. `renewing`: Inlet extends it. `lapsed`: the provider stopped sending, and Inlet creates it again. `failed`: the last request failed, and Inlet retries. `removing`: the channel no longer needs it, and the provider has not removed it yet. `suspended`: the hooks URL of this gateway differs from the registered one, so Inlet sends nothing until an operator adopts the registrations.",
    }),
    providerId: z.string().nullable().meta({ description: "Id of the webhook at the provider." }),
    events: z
      .array(z.string())
      .nullable()
      .meta({ description: "Event types that the provider sends. Null if it does not select by type." }),
    expiresAt: timestamp.nullable(),
    checkedAt: timestamp.nullable().meta({ description: "Time when the provider last confirmed it." }),
    lapsedAt: timestamp.nullable().meta({ description: "Time from which on events may be missing." }),
    nextAt: timestamp.nullable().meta({ description: "Time of the next request to the provider." }),
    lastError: z
      .object({ code: z.string(), message: z.string(), at: timestamp })
      .nullable()
      .meta({ description: "Reason of the last failed request. Null after a success." }),
  })
  .meta({ id: "Registration", description: "The registration of a channel's address at a provider." });

export type RegistrationEntity = z.output<typeof registrationSchema>;

const requestSchema = z
  .object({
    step: z.enum(["list", "create", "check", "update", "renew", "remove"]),
    method: z.string(),
    url: z.string(),
    headers: z.record(z.string(), z.string()),
    body: z.string().nullable(),
  })
  .meta({
    id: "RegistrationRequest",
    description: "A request to a provider, without credentials and secrets.",
  });

const dryRunSchema = z.object({ requests: z.array(requestSchema) }).meta({
  id: "RegistrationDryRun",
  description: "The requests of a registration, in the order of its life.",
});

const emptyBody = z.strictObject({});
const NO_REGISTRATION = "the channel's config has no `registration`";

/** Routes for the registrations of channels at providers. */
export const registrations: Resource = {
  tag: "Registrations",
  params: { ...channelParams, registrationId: pathId("reg", "registration") },
  routes(deps) {
    const { db, keyring, clock, presets, hooksUrl } = deps;

    async function show(row: RegistrationRow | undefined, channel?: ChannelRow) {
      const isOurs = row === undefined || (await isAdopted(db, hooksUrl));
      return renderRegistration(row, row && openContents(keyring, row).confirmed?.events, channel, isOurs);
    }

    const findChannel = (caller: Caller, params: { readonly appId: string; readonly channelId: string }) =>
      getChannel(db, keyring, appScopeOf(caller, params), params.channelId);

    async function act(
      caller: Caller,
      params: { readonly appId: string; readonly channelId: string },
      action: "check" | "recreate",
    ) {
      const channel = await findChannel(caller, params);
      await db.transaction().execute(async (trx) => {
        if (!(await requestAction(trx, channel.number, clock(), action)))
          throw conflict(`There is nothing to ${action}, because ${NO_REGISTRATION}.`);
        await recordChannelAudit(trx, caller, "update", channel, clock(), [`registration.${action}`]);
      });
      return show(await currentRegistration(db, channel.number).executeTakeFirst(), channel);
    }

    return [
      defineRoute({
        at: "GET /apps/:appId/channels/:channelId/registration",
        operation: "getRegistration",
        summary: "Get the registration of a channel",
        answer: registrationSchema,
        async handle({ caller, params }) {
          const channel = await findChannel(caller, params);
          return show(await currentRegistration(db, channel.number).executeTakeFirst(), channel);
        },
      }),
      defineRoute({
        at: "POST /apps/:appId/channels/:channelId/registration/check",
        operation: "checkRegistration",
        summary: "Check the registration of a channel now",
        description:
          "Asks the provider whether the registration still exists, and creates it again if not. Also retries a failed registration at once. The response shows the state before the check.",
        body: emptyBody,
        answer: registrationSchema,
        conflict: NO_REGISTRATION,
        handle: ({ caller, params }) => act(caller, params, "check"),
      }),
      defineRoute({
        at: "POST /apps/:appId/channels/:channelId/registration/recreate",
        operation: "recreateRegistration",
        summary: "Create the registration of a channel again",
        description:
          "Inlet looks for its registration at the provider, and creates it if it is missing. A secret that only the provider knows is replaced.",
        body: emptyBody,
        answer: registrationSchema,
        conflict: NO_REGISTRATION,
        handle: ({ caller, params }) => act(caller, params, "recreate"),
      }),
      defineRoute({
        at: "POST /apps/:appId/channels/:channelId/registration/dryRun",
        operation: "dryRunRegistration",
        summary: "Show the requests of a channel's registration",
        description: "Sends nothing. Credentials and secrets are replaced by `***`.",
        body: emptyBody,
        answer: dryRunSchema,
        permission: "apps.read",
        conflict: NO_REGISTRATION,
        async handle({ caller, params }) {
          const channel = await findChannel(caller, params);
          const row = await currentRegistration(db, channel.number).executeTakeFirst();
          const registration = row && findRegistration(presets, row);
          if (!row || !registration) throw conflict(`There are no requests, because ${NO_REGISTRATION}.`);
          const { address, events } = toRegisteredChannel(deps, channel, registration);
          const requests = renderSteps(
            registration,
            {
              params: row.params,
              address: canSeeAddresses(caller) ? address : `${hooksUrl}/hooks/${HIDDEN}`,
              secret: HIDDEN,
              events,
              name: row.id,
              id: row.providerId ?? "{id}",
              kept: row.kept,
              nowMs: clock(),
            },
            row.baseUrl,
          );
          return { requests };
        },
      }),
      defineRoute({
        at: "GET /registrations",
        operation: "listRegistrations",
        summary: "List registrations",
        description: "Includes those of deleted channels that the provider has not removed yet.",
        query: pageQuerySchema,
        answer: listOf(registrationSchema),
        permission: "apps.read",
        async handle({ caller, query }) {
          const all = db
            .selectFrom("registrations")
            .selectAll()
            .where("organizationId", "=", caller.organizationId);
          const { items, total } = await listPage(all, query, ["id"]);
          return { items: await Promise.all(items.map((row) => show(row))), total };
        },
      }),
      defineRoute({
        at: "DELETE /registrations/:registrationId",
        operation: "forgetRegistration",
        summary: "Forget a leftover registration",
        description:
          "For a registration in the state `removing` that Inlet cannot remove, after you removed it at the provider. Inlet sends no more requests for it.",
        answer: deleted,
        permission: "apps.write",
        conflict: "the registration belongs to a channel; remove `registration` from its config instead",
        async handle({ caller, params: { registrationId: id } }) {
          await db.transaction().execute(async (trx) => {
            const row = await trx
              .selectFrom("registrations")
              .select("state")
              .where((eb) => eb.and({ id, organizationId: caller.organizationId }))
              .forUpdate()
              .executeTakeFirst();
            if (!row) throw notFound("registration");
            if (row.state !== "removing")
              throw conflict(
                "The registration belongs to a channel. Remove `registration` from the channel's config instead.",
              );
            await trx.deleteFrom("registrations").where("id", "=", id).execute();
            await recordAudit(trx, caller, { action: "delete", entity: "registration", id }, clock());
          });
          return { id };
        },
      }),
      defineRoute({
        at: "POST /registrations/adopt",
        operation: "adoptRegistrations",
        summary: "Adopt all registrations",
        description:
          "Assigns the registrations of all organizations to the hooks URL of this gateway. Use it after a restore or a change of INLET_HOOKS_URL, and never on a copy of a system that is still running. Only the operator's organization may do this (403).",
        body: emptyBody,
        answer: z.object({ hooksUrl: z.string(), registrations: z.int() }).meta({
          id: "AdoptedRegistrations",
          description: "The hooks URL and the number of registrations.",
        }),
        permission: "apps.write",
        async handle({ caller }) {
          await requireOperator(db, caller, "adopt registrations");
          return { hooksUrl, registrations: await adoptRegistrations(db, hooksUrl, clock()) };
        },
      }),
    ];
  },
};

function renderRegistration(
  row: RegistrationRow | undefined,
  events: readonly string[] | null | undefined,
  channel: ChannelRow | undefined,
  isOurs: boolean,
) {
  /** The driver returns `Infinity` for the time of a registration that waits for its successor. */
  const time = (at: Date | number | null | undefined): string | null => {
    const ms = Number(at ?? Number.NaN);
    return Number.isFinite(ms) ? formatTimestamp(ms) : null;
  };
  return {
    id: row?.id ?? null,
    appId: row?.appId ?? channel?.appId ?? "",
    channelUid: row?.channelUid ?? channel?.uid ?? "",
    preset: row?.preset ?? null,
    target: row?.target ?? null,
    connectionId: row?.connectionId ?? null,
    state: row === undefined ? ("none" as const) : isOurs ? row.state : ("suspended" as const),
    providerId: row?.providerId ?? null,
    events: events ? [...events] : null,
    expiresAt: time(row?.expiresAt),
    checkedAt: time(row?.checkedAt),
    lapsedAt: time(row?.lapsedAt),
    nextAt: time(row?.nextAt),
    lastError: row?.lastError ?? null,
  };
}
