import type { VerifiedDelivery } from "../../event/received.ts";
import { redactBytes } from "../../lib/secrets/redact.ts";
import type { RouteGroup } from "../../normalize/route-items.ts";
import type { CompiledChannel } from "../compile-channel.ts";

/** Schemes with a credential that proves any delivery. A signature proves only the delivery that it covers. */
const CREDENTIAL_SCHEMES: ReadonlySet<string> = new Set(["token", "jwt", "anyOf"]);

/**
 * Hides the credential of the verification if it is in the body. With it, the organization of an install could send events to the other
 * installs.
 */
export function hideCredentials(
  { sender, verification }: CompiledChannel,
  whole: VerifiedDelivery,
  groups: readonly RouteGroup[],
): readonly RouteGroup[] {
  if (!CREDENTIAL_SCHEMES.has(verification?.scheme ?? "")) return groups;
  const redact = sender.createRedactor(whole);
  return groups.map((group) => {
    const { delivery } = group;
    return { ...group, delivery: { ...delivery, body: redactBytes(delivery.body, redact) } };
  });
}
