import type { Answer } from "../event/answer.ts";
import type { BodyReading } from "../event/body-reading.ts";
import type { HookMethod } from "../event/methods.ts";
import type { WrongField } from "../lib/check-fields.ts";
import { wrongFields } from "../lib/issue-message.ts";
import { mergePatch } from "../lib/json/merge-patch.ts";
import { suggestNearest } from "../lib/nearest.ts";
import { err, ok, type Result } from "../lib/result.ts";
import type { Handshake } from "./handshake/config.ts";
import { resolveMethods } from "./methods.ts";
import type { Preset, Presets } from "./presets.ts";
import { findScheme, type VerificationConfig, verificationSchema } from "./schemes.ts";
import { type Secret, type SenderConfig, senderConfigSchema } from "./sender-config.ts";
import type { RequestPlace } from "./verifier.ts";

/** Sender config of a channel, such as its verification scheme, merged with the config of its provider preset. */
export interface Sender
  extends Pick<SenderConfig, "allowedAddresses" | "shadow" | "allowHandshakes" | "readAs"> {
  readonly verification: VerificationConfig;
  readonly secrets: readonly Secret[];
  readonly handshakes: readonly Handshake[];
  /** HTTP methods of deliveries. */
  readonly methods: readonly HookMethod[];
  readonly answer: Answer;
  readonly reading: BodyReading;
  readonly paths: Pick<Preset, "typePath" | "idPath" | "itemsPath">;
}

/** Merges a channel's config over the config of its provider preset, and validates the result. */
export function resolveSender(config: SenderConfig, presets: Presets): Result<Sender, readonly WrongField[]> {
  const preset = config.preset === undefined ? undefined : presets.get(config.preset);
  if (config.preset !== undefined && preset === undefined)
    return err([unknownPreset(config.preset, presets)]);
  const { scheme, ...own } = config.verification;
  const isLeft = scheme === "preset" || (scheme === "none" && preset !== undefined);
  if (isLeft && preset === undefined) {
    return err([{ path: ["preset"], message: "is required: `verification` is inherited from it" }]);
  }
  const said = isLeft ? mergePatch({ ...preset?.verification }, own) : config.verification;
  const verification = verificationSchema.safeParse(said);
  if (!verification.success) {
    const wrong = wrongFields(verification.error, said);
    return err(wrong.map(({ path, message }) => ({ path: ["verification", ...path], message })));
  }
  const { methods, handshakes, wrong: wrongMethods } = resolveMethods(config, preset, verification.data);
  const wrong = [
    ...wrongMethods,
    ...findWrongSecrets(verification.data, config.secrets),
    ...findSigningOracles(verification.data, handshakes),
  ];
  if (wrong.length > 0) return err(wrong);
  const { typePath, idPath, itemsPath } = preset ?? {};
  return ok({
    verification: verification.data,
    secrets: config.secrets,
    allowedAddresses: config.allowedAddresses,
    shadow: config.shadow,
    handshakes,
    methods,
    allowHandshakes: config.allowHandshakes,
    readAs: config.readAs === "ndjson" ? "application/x-ndjson" : (config.readAs ?? preset?.readAs),
    reading: {
      forms: config.forms ?? preset?.forms ?? "fields",
      formCharset: config.formCharset ?? preset?.formCharset,
      decode: config.decode ?? preset?.decode,
      files: config.files ?? preset?.files,
    },
    answer: config.answer ?? preset?.answer ?? "outcome",
    paths: { typePath, idPath, itemsPath },
  });
}

/**
 * Returns whether verification needs a secret that is not set yet. Until it is set, the channel rejects deliveries with status 401.
 */
export function lacksSecret({
  verification,
  secrets,
  shadow,
}: Pick<Sender, "verification" | "secrets" | "shadow">): boolean {
  if (shadow || secrets.some(({ name }) => name === undefined)) return false;
  return findScheme(verification).needsSecret(verification);
}

/**
 * Returns whether the verification of a sender proves that the sender chose the value at this place. False for all places in shadow mode
 * and without verification.
 */
export const coversPlace = ({ verification, shadow }: Sender, place: RequestPlace): boolean =>
  !shadow && findScheme(verification).covers(verification, place);

/** Returns whether the channel answers handshakes. With `setup`, it does so until it has a secret. */
export function handshakesEnabled(sender: Sender): boolean {
  switch (sender.allowHandshakes) {
    case "always":
      return true;
    case "setup":
      return lacksSecret({ ...sender, shadow: false });
    case "never":
      return false;
    default:
      return sender.allowHandshakes satisfies never;
  }
}

/** Returns whether a stored config lacks a secret or has become invalid, so that no delivery can be verified. */
export function needsSetup(config: unknown, presets: Presets): boolean {
  const sender = parseSender(config, presets);
  return sender === undefined || lacksSecret(sender);
}

/**
 * Returns whether the channel rejects requests that fail verification. Also true for an invalid config, with which every request is
 * rejected.
 */
export function verifiesSenders(config: unknown, presets: Presets): boolean {
  const sender = parseSender(config, presets);
  return sender === undefined || (sender.verification.scheme !== "none" && !sender.shadow);
}

function parseSender(config: unknown, presets: Presets): Sender | undefined {
  const parsed = senderConfigSchema.safeParse(config);
  const sender = parsed.success ? resolveSender(parsed.data, presets) : undefined;
  return sender?.ok ? sender.value : undefined;
}

function unknownPreset(name: string, presets: Presets): WrongField {
  const hint = suggestNearest(name.toLowerCase(), [...presets.keys()]);
  return { path: ["preset"], message: `is not a known preset${hint}` };
}

function findWrongSecrets(
  verification: VerificationConfig,
  secrets: readonly Secret[],
): readonly WrongField[] {
  const scheme = findScheme(verification);
  return secrets.flatMap(({ name, value }, index) => {
    const message = name === undefined ? scheme.findWrongSecret(verification, value) : undefined;
    return message === undefined ? [] : [{ path: ["secrets", index, "value"], message }];
  });
}

/**
 * Finds handshakes with which an attacker could forge deliveries. Such a handshake signs texts for any caller, while delivery
 * signatures do not cover the body.
 */
function findSigningOracles(
  { signsBody, of }: VerificationConfig,
  handshakes: readonly Handshake[],
): readonly WrongField[] {
  const ways: readonly { readonly signsBody?: unknown }[] = Array.isArray(of) ? of : [{ signsBody }];
  if (ways.every((way) => way.signsBody !== false)) return [];
  const message =
    "must be true, because this handshake signs texts for any caller and delivery signatures do not cover the body";
  return handshakes.flatMap((handshake, index) =>
    signsForAnyone(handshake) ? [{ path: ["handshakes", index, "requireVerified"], message }] : [],
  );
}

export const signsForAnyone = ({ requireVerified, respond }: Handshake): boolean =>
  !requireVerified && [respond.body, ...Object.values(respond.headers)].some((text) => SIGNS.test(text));

const SIGNS = /\|\s*hmac-/;
