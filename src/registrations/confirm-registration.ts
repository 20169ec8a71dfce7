import type { Queryable } from "../data/database.ts";
import { noteConfirmation } from "../data/registrations/registration-work.ts";
import { currentRegistration } from "../data/registrations/registrations.ts";
import type { ChannelIdentity } from "../event/channel.ts";
import { fillPlaceholders } from "../lib/fill-placeholders.ts";
import type { Presets } from "../verify/presets.ts";
import { RENEW_AT } from "./desired-contents.ts";
import { findRegistration } from "./find-registration.ts";

/**
 * Creates a function that notes the handshake with which a provider confirms a registration, and the lifetime that it grants. Handshakes
 * that name another object are ignored, because anyone who knows the address can send them.
 */
export const createConfirmRegistration =
  ({
    db,
    presets,
    clock,
  }: {
    readonly db: Queryable;
    readonly presets: Presets;
    readonly clock: () => number;
  }) =>
  async ({ number }: Pick<ChannelIdentity, "number">, query: URLSearchParams): Promise<void> => {
    const row = await currentRegistration(db, number).executeTakeFirst();
    const confirmation = row && findRegistration(presets, row)?.create.confirmation;
    if (!row || confirmation === undefined) return;
    const expected = fillPlaceholders(confirmation.equals, {
      has: () => true,
      get: (name) => row.params[name.replace(/^params\./, "")],
    });
    if (query.get(confirmation.query) !== expected) return;
    const granted = Number(query.get(confirmation.leaseSeconds ?? "") ?? Number.NaN);
    const nowMs = clock();
    const lifetimeMs = granted > 0 ? granted * 1_000 : undefined;
    await noteConfirmation(db, row.id, {
      nowMs,
      expiresAtMs: lifetimeMs === undefined ? null : nowMs + lifetimeMs,
      renewAtMs: lifetimeMs === undefined ? null : nowMs + lifetimeMs * RENEW_AT,
    });
  };
