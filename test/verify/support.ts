import type { RawRequest } from "../../src/event/received.ts";
import { UnavailableError } from "../../src/lib/errors.ts";
import { createKeyCaches, type FetchPinned } from "../../src/verify/keys/key-cache.ts";
import type { Presets } from "../../src/verify/presets.ts";
import { resolveSender, type Sender } from "../../src/verify/sender.ts";
import { senderConfigSchema } from "../../src/verify/sender-config.ts";
import type { FailureReason } from "../../src/verify/verifier.ts";
import { type CompiledSender, compileSender } from "../../src/verify/verify.ts";

export const HOOKS_URL = "https://hooks.example.com";
/** Default time of receipt: 2026-01-01T00:00:00Z. */
export const ARRIVED_AT_MS = Date.parse("2026-01-01T00:00:00Z");
export const TARGET = "/hooks/ch_1";

export interface SenderOptions {
  readonly presets?: Presets;
  readonly fetchPinned?: FetchPinned;
  readonly onShadowed?: (reason: FailureReason) => void;
}

/** Resolves a sender from its settings. @throws Error with all findings if the settings are invalid */
export function parseSender(config: unknown, presets: Presets = new Map()): Sender {
  const sender = resolveSender(senderConfigSchema.parse(config), presets);
  if (!sender.ok) throw new Error(JSON.stringify(sender.error));
  return sender.value;
}

export function senderOf(config: unknown, options: SenderOptions = {}): CompiledSender {
  const failToFetch: FetchPinned = async () => {
    throw new UnavailableError("fetching is not available in this test");
  };
  return compileSender(parseSender(config, options.presets), {
    hooksUrl: HOOKS_URL,
    keys: createKeyCaches(options.fetchPinned ?? failToFetch)("org_1"),
    onShadowed: options.onShadowed ?? (() => {}),
  });
}

export interface RequestParts extends Partial<Omit<RawRequest, "body">> {
  readonly body?: string | Buffer;
}

export const requestOf = (parts: RequestParts = {}): RawRequest => ({
  method: "POST",
  target: TARGET,
  headers: {},
  arrivedAtMs: ARRIVED_AT_MS,
  ...parts,
  body: Buffer.from(parts.body ?? ""),
});

export async function isVerified(sender: CompiledSender, parts: RequestParts): Promise<boolean> {
  return (await sender.verify(requestOf(parts))).ok;
}

/** Returns the messages of invalid settings, keyed by path such as `verification.template`. */
export function findingsOf(config: unknown, presets: Presets = new Map()): Record<string, string> {
  const parsed = senderConfigSchema.safeParse(config);
  const formatPath = (path: readonly PropertyKey[]): string => path.map(String).join(".");
  if (!parsed.success) {
    return Object.fromEntries(parsed.error.issues.map(({ path, message }) => [formatPath(path), message]));
  }
  const sender = resolveSender(parsed.data, presets);
  if (sender.ok) return {};
  return Object.fromEntries(sender.error.map(({ path, message }) => [formatPath(path), message]));
}
