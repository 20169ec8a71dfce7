import {
  type RegistrationContents,
  type SealedContents,
  secretsIn,
} from "../data/registrations/registration-contents.ts";
import type { Definition } from "../event/definition.ts";
import type { PresetRegistration } from "../verify/preset-registration.ts";

/** A channel as its registration needs it. */
export interface RegisteredChannel {
  readonly address: string;
  /** The secret in the channel's config. `undefined` if Inlet or the provider chooses it. */
  readonly secret: string | undefined;
  readonly events: readonly string[] | null;
  readonly checkSeconds: number;
}

interface ContentsDeps {
  readonly registration: PresetRegistration;
  readonly contents: SealedContents;
  readonly createSecret: () => string;
}

/** Returns the contents that the provider should store for the channel. */
export function toDesired(
  { registration, contents: { confirmed, pending }, createSecret }: ContentsDeps,
  { address, secret, events }: RegisteredChannel,
): RegistrationContents {
  const chosen = secret ?? pending?.secret ?? confirmed?.secret ?? createSecret();
  return {
    address,
    secret: registration.secret === "ours" ? chosen : confirmed?.secret,
    events: events === null ? null : [...events].sort(),
  };
}

/** Returns whether gateways may not accept the secret yet, so that the provider must not use it. */
export const needsSettling = (
  { registration, contents }: Pick<ContentsDeps, "registration" | "contents">,
  { secret }: RegistrationContents,
): boolean => registration.secret === "ours" && secret !== undefined && !secretsIn(contents).includes(secret);

/** Returns whether the provider has confirmed the contents. */
export const isConfirmed = (
  { secret }: Pick<PresetRegistration, "secret">,
  desired: RegistrationContents,
  confirmed: RegistrationContents,
): boolean =>
  desired.address === confirmed.address &&
  (secret !== "ours" || desired.secret === confirmed.secret) &&
  JSON.stringify(desired.events) === JSON.stringify(confirmed.events);

/**
 * Returns the provider's names of the event types that the channel's definitions accept. `null` if the provider selects nothing.
 *
 * @param presetPath the preset's path of the type. The types of definitions with another path are no types of the provider.
 */
export function toEventTypes(
  { events }: Pick<PresetRegistration, "events">,
  definitions: readonly Definition[],
  presetPath: string | undefined,
): readonly string[] | null {
  if (events === undefined) return null;
  const named = definitions.filter(({ typePath = presetPath }) => typePath === presetPath);
  const isOpen = named.length < definitions.length || definitions.length === 0;
  if (isOpen && events.all !== null) return events.all;
  return [...new Set(named.map(({ type }) => events.values?.[type] ?? type))];
}

/** Returns the end of the requested lifetime in ms since 1970, counted from now by default. `undefined` if there is no end. */
export function endOfLifetime(
  { registration, clock }: { readonly registration: PresetRegistration; readonly clock: () => number },
  fromMs: number = clock(),
): number | undefined {
  const { lifetimeSeconds } = registration;
  return lifetimeSeconds === undefined ? undefined : fromMs + lifetimeSeconds * 1_000;
}

/** Fraction of the lifetime after which a registration is renewed, less a random part that spreads the load. */
const RENEW_AT = 0.5;
const JITTER = 0.1;

export function toTimes(
  {
    registration,
    clock,
    random,
  }: {
    readonly registration: PresetRegistration;
    readonly clock: () => number;
    readonly random: () => number;
  },
  expiresAtMs: number | undefined,
): { readonly expiresAtMs: number | null; readonly renewAtMs: number | null } {
  if (expiresAtMs === undefined) return { expiresAtMs: null, renewAtMs: null };
  const nowMs = clock();
  const renewAtMs = nowMs + (expiresAtMs - nowMs) * (RENEW_AT - JITTER * random());
  return { expiresAtMs, renewAtMs: registration.renew === undefined ? null : renewAtMs };
}
