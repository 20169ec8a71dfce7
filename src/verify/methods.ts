import { DEFAULT_METHODS, type HookMethod } from "../event/methods.ts";
import type { WrongField } from "../lib/check-fields.ts";
import type { Handshake } from "./handshake/config.ts";
import { couldMatchDelivery, HOW_TO_TELL, handshakeSchema } from "./handshake/schema.ts";
import type { Preset } from "./presets.ts";
import { findScheme, type VerificationConfig } from "./schemes.ts";
import type { SenderConfig } from "./sender-config.ts";

interface ResolvedMethods {
  /** HTTP methods of deliveries, without HEAD. */
  readonly methods: readonly HookMethod[];
  /** Handshakes of the channel, with one for HEAD if `methods` lists it. */
  readonly handshakes: readonly Handshake[];
  readonly wrong: readonly WrongField[];
}

/**
 * Merges the methods of a channel with those of its preset. A method of the channel that could not be verified is an error. A method of the
 * preset is dropped instead, because the channel may have replaced the preset's verification or handshakes.
 */
export function resolveMethods(
  config: Pick<SenderConfig, "methods" | "handshakes" | "allowHandshakes">,
  preset: Pick<Preset, "methods" | "handshakes"> | undefined,
  verification: VerificationConfig,
): ResolvedMethods {
  const handshakes = config.handshakes ?? preset?.handshakes ?? [];
  const reasons = findReasons(config.allowHandshakes, handshakes, verification);
  const own = config.methods ?? [];
  const all = config.methods ?? (preset?.methods ?? DEFAULT_METHODS).filter((method) => !reasons.has(method));
  const wrong = own.flatMap((method) => {
    const reason = reasons.get(method);
    return reason === undefined
      ? []
      : [{ path: ["methods", own.indexOf(method)], message: `must not be ${method}, because ${reason}` }];
  });
  const answersHead = all.includes("HEAD") && !handshakes.some(({ when }) => when.method === "HEAD");
  return {
    methods: all.filter((method) => method !== "HEAD"),
    handshakes: answersHead ? [...handshakes, HEAD_HANDSHAKE] : handshakes,
    wrong,
  };
}

/** Returns the methods with which the channel cannot receive deliveries, with the reason. */
function findReasons(
  allowHandshakes: SenderConfig["allowHandshakes"],
  handshakes: readonly Handshake[],
  verification: VerificationConfig,
): ReadonlyMap<HookMethod, string> {
  const reasons = new Map<HookMethod, string>();
  const gap = findScheme(verification).findQueryGap(verification);
  if (gap !== undefined) {
    const effect = gap.isForgeable ? "anyone with one delivery could forge others" : "each would be rejected";
    for (const method of ["GET", "DELETE"] as const)
      reasons.set(method, `its content is the query, and ${gap.message}, so ${effect}`);
  }
  if (allowHandshakes === "never") {
    reasons.set("HEAD", "it is answered as a handshake, which `allowHandshakes: never` disables");
    return reasons;
  }
  for (const { title, when } of handshakes) {
    if ((when.method === "GET" || when.method === "PUT") && couldMatchDelivery(when.all))
      reasons.set(when.method, `the handshake ${JSON.stringify(title)} answers all of them: ${HOW_TO_TELL}`);
  }
  return reasons;
}

const HEAD_HANDSHAKE: Handshake = handshakeSchema.parse({
  title: "Availability check",
  when: { method: "HEAD" },
  requireVerified: false,
});
