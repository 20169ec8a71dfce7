import { openAddress } from "../../../data/channels/address-columns.ts";
import { openSecrets } from "../../../data/channels/channel-secrets.ts";
import type { ChannelRow } from "../../../data/tables.ts";
import type { VerifiedDelivery } from "../../../event/received.ts";
import type { CompiledChannel } from "../../../ingest/compile-channel.ts";
import { resolveSender } from "../../../verify/sender.ts";
import { senderConfigSchema } from "../../../verify/sender-config.ts";
import { type OutgoingRequest, splitTarget } from "../../../verify/sign/place.ts";
import { signRequest } from "../../../verify/sign/sign.ts";
import type { Deps } from "../../kit/deps.ts";
import { skipVerification } from "../given-delivery.ts";

export interface SignedGiven {
  readonly delivery: VerifiedDelivery;
  /** Why the verification was skipped. `null` if the delivery was signed and verified. */
  readonly skippedBecause: string | null;
}

/**
 * Signs a delivery with the intake's secrets and verifies it like a received one. Skips the verification if only the provider can sign the
 * delivery.
 */
export async function signGiven(
  { presets, keyring, hooksUrl, clock }: Pick<Deps, "presets" | "keyring" | "hooksUrl" | "clock">,
  row: ChannelRow,
  intake: CompiledChannel,
  unsigned: OutgoingRequest,
): Promise<SignedGiven> {
  const nowMs = clock();
  const config = senderConfigSchema.parse({ ...row.config, ...openSecrets(keyring, row) });
  const sender = resolveSender(config, presets);
  if (!sender.ok) throw new Error("the verification of an intake is invalid although it was checked");
  const { verification, secrets, readAs } = sender.value;
  const [, query] = splitTarget(unsigned.target);
  const path = `/hooks/${openAddress(keyring, row)}`;
  const request = { ...unsigned, target: query ? `${path}?${query}` : path };
  let reason = "the intake has no secret";
  for (const { value } of secrets) {
    const signed = await signRequest(request, verification, { secret: value, hooksUrl, nowMs, readAs });
    const verified = signed.ok
      ? await intake.sender.verify({ ...signed.value, arrivedAtMs: nowMs })
      : undefined;
    if (verified?.ok) return { delivery: verified.value, skippedBecause: null };
    reason = signed.ok ? "the secret is not valid now" : signed.error;
  }
  return { delivery: skipVerification(intake, { ...request, arrivedAtMs: nowMs }), skippedBecause: reason };
}
