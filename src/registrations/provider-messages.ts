import type { Wakes } from "../bus/sources/wakes.ts";
import { listReconciling } from "../data/channels/sources.ts";
import type { Queryable } from "../data/database.ts";
import { noteConfirmation } from "../data/registrations/registration-work.ts";
import { currentRegistration, requestAction } from "../data/registrations/registrations.ts";
import type { ChannelIdentity } from "../event/channel.ts";
import { fillPlaceholders } from "../lib/fill-placeholders.ts";
import type { RegistrationSignal } from "../verify/preset-registration.ts";
import type { Presets } from "../verify/presets.ts";
import { toTimes } from "./desired-contents.ts";
import { findRegistration } from "./find-registration.ts";

export interface ProviderMessagesDeps {
  readonly db: Queryable;
  readonly presets: Presets;
  readonly clock: () => number;
  readonly random?: () => number;
}

/** Minimum lifetime in seconds. A handshake with a shorter lifetime would make Inlet renew too often. */
const MIN_LIFETIME_SECONDS = 300;

/** Limits the granted lifetime to the requested one, because anyone who knows the address can send a handshake. */
function limitLifetime(granted: number, requested: number | undefined): number | undefined {
  const lifetime = granted > 0 ? Math.min(granted, requested ?? granted) : requested;
  return lifetime === undefined ? undefined : Math.max(lifetime, MIN_LIFETIME_SECONDS);
}

/** Notes requests with which a provider reports the state of a registration. All functions throw UnavailableError. */
export function createProviderMessages({ db, presets, clock, random = Math.random }: ProviderMessagesDeps) {
  return {
    /**
     * Notes the handshake with which a provider confirms a registration, and the lifetime that it grants. Handshakes that name another
     * object are ignored, because anyone who knows the address can send them.
     */
    async confirmRegistration(
      { number }: Pick<ChannelIdentity, "number">,
      query: URLSearchParams,
    ): Promise<void> {
      const row = await currentRegistration(db, number).executeTakeFirst();
      const registration = row && findRegistration(presets, row);
      const confirmation = registration?.create.confirmation;
      if (!row || registration === undefined || confirmation === undefined) return;
      const expected = fillPlaceholders(confirmation.equals, {
        has: () => true,
        get: (name) => row.params[name.replace(/^params\./, "")],
      });
      if (query.get(confirmation.query) !== expected) return;
      const granted = Number(query.get(confirmation.leaseSeconds ?? ""));
      const nowMs = clock();
      const lifetimeSeconds = limitLifetime(granted, registration.lifetimeSeconds);
      const expiresAtMs = lifetimeSeconds === undefined ? undefined : nowMs + lifetimeSeconds * 1_000;
      await noteConfirmation(db, row.id, nowMs, toTimes({ registration, clock, random }, expiresAtMs));
    },

    /** Stores the reactions to signals of a provider. A worker then carries them out. */
    async reactToSignals(
      channel: ChannelIdentity,
      signals: ReadonlySet<RegistrationSignal>,
      wakes: Pick<Wakes, "store">,
    ): Promise<void> {
      const nowMs = clock();
      for (const action of ["renew", "check"] as const)
        if (signals.has(action))
          await db.transaction().execute((trx) => requestAction(trx, channel.number, nowMs, action));
      if (signals.has("reconcile")) await wakeReconciling({ db, clock, wakes }, channel);
    },
  };
}

/** Wakes the channels that find the events that a webhook channel missed. */
export async function wakeReconciling(
  { db, clock, wakes }: Pick<ProviderMessagesDeps, "db" | "clock"> & { readonly wakes: Pick<Wakes, "store"> },
  { appId, uid }: Pick<ChannelIdentity, "appId" | "uid">,
): Promise<void> {
  for (const reconciling of await listReconciling(db, { appId, uid }))
    await wakes.store({ appId, uid: reconciling }, clock());
}
