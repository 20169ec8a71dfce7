import { z } from "zod";
import { ADDRESS_PERMISSION } from "../../../channels/entity.ts";
import type { AuditAction } from "../../../data/accounts/audit-entry.ts";
import { MAX_FORMER_ADDRESSES, rotateAddress } from "../../../data/channels/channel-addresses.ts";
import { openSecrets } from "../../../data/channels/channel-secrets.ts";
import { pauseChannel, resumeChannel } from "../../../data/channels/channel-states.ts";
import type { Trx } from "../../../data/database.ts";
import type { ChannelRow } from "../../../data/tables.ts";
import type { Caller } from "../../../http/context.ts";
import { conflict } from "../../../http/errors.ts";
import { pathId } from "../../kit/params.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { getIntake, type IntakeRows } from "../intake-scope.ts";
import { rotateSchema } from "../rotate-schema.ts";
import { changeIntake, renderIntake } from "./queries.ts";
import { intakePatchSchema, intakeSchema } from "./schema.ts";
import { deleteIntake, writeIntake } from "./write-intake.ts";

const emptyBody = z.strictObject({});
const NO_INTAKE = "the organization has no such blueprint, or the blueprint has no intake";

/** Routes for the intake of a blueprint: one address and one set of secrets for all installs. */
export const intakes: Resource = {
  tag: "Blueprints",
  params: { blueprintId: pathId("bp", "blueprint") },
  routes: (deps) => {
    const { clock, keyring } = deps;

    async function changeState(
      caller: Caller,
      { blueprintId }: { readonly blueprintId: string },
      action: AuditAction,
      change: (trx: Trx, before: IntakeRows) => Promise<ChannelRow>,
    ) {
      return renderIntake(deps, caller, await changeIntake(deps, caller, blueprintId, action, change));
    }

    return [
      defineRoute({
        at: "GET /blueprints/:blueprintId/intake",
        operation: "getIntake",
        summary: "Get the intake of a blueprint",
        answer: intakeSchema,
        reveals: ADDRESS_PERMISSION,
        missing: NO_INTAKE,
        handle: async ({ caller, params }) =>
          renderIntake(deps, caller, await getIntake(deps.db, caller, params.blueprintId)),
      }),
      defineRoute({
        at: "PUT /blueprints/:blueprintId/intake",
        operation: "updateIntake",
        summary: "Create or change the intake of a blueprint",
        description:
          "The intake receives the events of all customers at one address. It verifies each delivery once and routes each item by its route key to the install that owns the key. The first request needs `channel` and `routeBy`. Later requests change the fields that you send, within two seconds. Each change is a new version of the blueprint: if a store must approve it, only secrets take effect before the approval. Every install keeps its own address.",
        body: intakePatchSchema,
        answer: intakeSchema,
        reveals: ADDRESS_PERMISSION,
        handle: async ({ caller, params, body }) =>
          renderIntake(deps, caller, await writeIntake(deps, caller, params.blueprintId, body)),
      }),
      defineRoute({
        at: "DELETE /blueprints/:blueprintId/intake",
        operation: "deleteIntake",
        summary: "Delete the intake of a blueprint",
        description:
          "Its address responds with 404 within two seconds. Also deletes the route keys of all installs and the items that the intake holds.",
        answer: z.object({ id: z.string() }),
        missing: NO_INTAKE,
        async handle({ caller, params: { blueprintId } }) {
          await deleteIntake(deps, caller, blueprintId);
          // The intake is already deleted from PostgreSQL. If the cleanup in Redis fails, a background job retries the cleanup.
          await deps.onDeleted().catch(() => {});
          return { id: blueprintId };
        },
      }),
      defineRoute({
        at: "POST /blueprints/:blueprintId/intake/pause",
        operation: "pauseIntake",
        summary: "Pause an intake",
        description:
          "Deliveries are still verified, and buffered in the intake's quarantine as `paused` for up to seven days. After you resume the intake, they are routed in order of arrival.",
        body: emptyBody,
        answer: intakeSchema,
        reveals: ADDRESS_PERMISSION,
        missing: NO_INTAKE,
        handle: ({ caller, params }) =>
          changeState(caller, params, "pause", (trx, { intake }) =>
            pauseChannel(trx, intake, { buffersWhilePaused: true, nowMs: clock() }),
          ),
      }),
      defineRoute({
        at: "POST /blueprints/:blueprintId/intake/resume",
        operation: "resumeIntake",
        summary: "Resume an intake",
        description: "Routes the deliveries that arrived during the pause, in order of arrival.",
        body: emptyBody,
        answer: intakeSchema,
        reveals: ADDRESS_PERMISSION,
        missing: NO_INTAKE,
        conflict: "a store must approve the blueprint first",
        handle: ({ caller, params }) =>
          changeState(caller, params, "resume", (trx, { intake }) => {
            if (intake.routing?.awaitsFirstApproval)
              throw conflict("A store must approve the blueprint before its intake can be resumed.");
            const kind = deps.channelKinds.get(intake.routing?.kind ?? "");
            const config = { ...intake.config, ...openSecrets(keyring, intake) };
            const state = kind?.needsSetup(config, deps.presets) === false ? "active" : "needsSetup";
            return resumeChannel(trx, intake, { state, nowMs: clock() });
          }),
      }),
      defineRoute({
        at: "POST /blueprints/:blueprintId/intake/rotate",
        operation: "rotateIntake",
        summary: "Give an intake a new address",
        description:
          "All former addresses accept deliveries for at most `graceSeconds` from now, then respond with 404. Secrets, route keys and held items do not change.",
        body: rotateSchema,
        answer: intakeSchema,
        reveals: ADDRESS_PERMISSION,
        missing: NO_INTAKE,
        conflict: `${MAX_FORMER_ADDRESSES} former addresses are still valid and \`graceSeconds\` is not 0`,
        handle: ({ caller, params, body: { graceSeconds } }) =>
          changeState(caller, params, "rotate", async (trx, { intake }) => {
            const rotated = await rotateAddress(trx, keyring, intake, { graceSeconds, nowMs: clock() });
            if (rotated) return rotated;
            throw conflict(
              `The intake already has ${MAX_FORMER_ADDRESSES} valid former addresses. Set graceSeconds to 0 to invalidate them.`,
            );
          }),
      }),
    ];
  },
};
