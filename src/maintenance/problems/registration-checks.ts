import type { Queryable } from "../../data/database.ts";
import {
  findOperator,
  listTroubledRegistrations,
  type TroubledRegistration,
} from "../../data/problems/affected-objects.ts";
import type { Sighting } from "../../data/problems/problems.ts";
import { hasSuspended } from "../../data/registrations/registrations.ts";
import { formatTimestamp } from "../../lib/clock.ts";
import type { Presets } from "../../verify/presets.ts";

export interface RegistrationChecksDeps {
  readonly db: Queryable;
  readonly presets: Presets;
  readonly hooksUrl: string;
}

/** Finds registrations that lapsed, that cannot be created or renewed, and that cannot be removed. */
export async function findTroubledRegistrations(deps: RegistrationChecksDeps): Promise<readonly Sighting[]> {
  const found = await listTroubledRegistrations(deps.db);
  return [...found.map((one) => describe(deps, one)), ...(await findSuspended(deps))];
}

function describe(
  { presets }: Pick<RegistrationChecksDeps, "presets">,
  { organizationId, subject, about, ...registration }: TroubledRegistration,
): Sighting {
  const { id, preset, target, state, lapsedAt, lastError } = registration;
  const title = presets.get(preset)?.title ?? preset;
  const reason = lastError === null ? "" : ` ${lastError.message}`;
  const named = { organizationId, subject, about, severity: "error" } as const;
  if (state === "removing") {
    const steps =
      presets.get(preset)?.registrations.find((one) => one.target === target)?.manualRemoval ?? "";
    return {
      ...named,
      kind: "registration_orphaned",
      message: `A webhook of the channel ${about.channel?.uid} at ${title} is no longer needed and cannot be removed.${reason}`,
      suggestedAction: `${steps} Then forget it with DELETE /registrations/${id}.`.trim(),
    };
  }
  if (lapsedAt !== null)
    return {
      ...named,
      kind: "registration_lapsed",
      message: `${title} no longer sends to the channel. Events since ${formatTimestamp(lapsedAt.getTime())} may be missing.${reason}`,
      suggestedAction:
        "Inlet registers the channel again. If that keeps failing, correct the connection or the parameters of `registration`.",
    };
  return {
    ...named,
    kind: "registration_failed",
    message: `The channel cannot be registered at ${title}.${reason}`,
    suggestedAction:
      "Correct the connection or the parameters of `registration`, then run `inlet channels registration --check`.",
  };
}

/** Reports to the operator's organization that this gateway sends no requests for registrations. */
async function findSuspended({ db, hooksUrl }: RegistrationChecksDeps): Promise<readonly Sighting[]> {
  const operator = (await hasSuspended(db, hooksUrl)) ? await findOperator(db) : undefined;
  if (operator === undefined) return [];
  return [
    {
      ...operator,
      kind: "registration_failed",
      severity: "error",
      message: `All registrations are suspended, because they belong to another hooks URL than ${hooksUrl}.`,
      suggestedAction:
        "If this system replaces the other one, run `inlet registrations adopt`. If it is a copy, leave the registrations suspended.",
    },
  ];
}
