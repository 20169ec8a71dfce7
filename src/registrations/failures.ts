import { formatTimestamp } from "../lib/clock.ts";
import type { PresetRegistration } from "../verify/preset-registration.ts";
import type { StepFailure } from "./provider.ts";

const failure = (code: string, message: string): StepFailure => ({ code, message, isRejected: true });

export const foreign = ({ id }: { readonly id: string }): StepFailure =>
  failure(
    "foreign",
    `The provider already sends to this channel through the webhook ${id}, which Inlet did not create. Delete that webhook at the provider, then run the check again.`,
  );

export const slotTaken: StepFailure = failure(
  "slot_taken",
  "The provider stores only one webhook for this object, and it has another address. Delete that webhook at the provider, then run the check again.",
);

/** Number of characters of the secret part of an address that a message shows. They identify the webhook, but do not give access to it. */
const SHOWN_CHARACTERS = 6;

export function orphaned(
  { manualRemoval }: Pick<PresetRegistration, "manualRemoval">,
  { address }: { readonly address: string },
): StepFailure {
  const start = address.slice(0, address.lastIndexOf("/") + 1 + SHOWN_CHARACTERS);
  return failure(
    "orphaned",
    `Inlet never received the provider's response to the creation, so it cannot remove the registration. Its address begins with ${start}. ${manualRemoval}`,
  );
}

export const unsupported = ({
  preset,
  target,
}: {
  readonly preset: string;
  readonly target: string;
}): StepFailure =>
  failure(
    "unsupported",
    `This version of Inlet has no registration ${target} for the preset ${preset}. Run the version that created it, or remove \`registration\` from the channel's config.`,
  );

export const tookTooLong = failure("timeout", "The provider took too long to respond. Inlet tries again.");

export const unexpected = failure(
  "internal",
  "An unexpected error ended the attempt, which the log of the gateway describes. Inlet tries again.",
);

/** Shown until the provider's handshake arrives. */
export const unconfirmed = (nowMs: number) => ({
  code: "unconfirmed",
  message: "The provider has accepted the request and not confirmed it yet.",
  at: formatTimestamp(nowMs),
});

export const unreadable = (what: string, path: string | undefined): StepFailure => ({
  code: "unreadable",
  message: `The provider's response to the creation contains no ${what} at ${path}.`,
  isRejected: false,
});

export const unreadableCheck: StepFailure = failure(
  "unreadable",
  "The provider's response to the check is not JSON.",
);

export const unreadableList = (path: string): StepFailure =>
  failure("unreadable", `The provider's response contains no list of webhooks at ${path}.`);
