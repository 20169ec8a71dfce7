import { checkFields, type NoteWrong } from "../../lib/check-fields.ts";
import { type Handshake, handshakeShape } from "./config.ts";
import { compileReply } from "./reply.ts";

export const handshakeSchema = handshakeShape
  .check(
    checkFields((handshake, note) => {
      findWrongConditions(handshake, note);
      findWrongPlaces(handshake, note);
      const reply = compileReply(handshake.respond);
      if (reply.ok) return;
      for (const { path, message } of reply.error) note(["respond", ...path], message);
    }),
  )
  .describe("A provider's setup request that is not a delivery, and Inlet's response to that request.");

/** Finds contradictory conditions, and handshakes that could mistake a delivery for a handshake request. */
function findWrongConditions({ when: { method, all } }: Handshake, note: NoteWrong): void {
  all.forEach(({ equals, equalsSecret, absent }, index) => {
    const said = [equals, equalsSecret, absent].filter((word) => word !== undefined).length;
    if (said > 1)
      note(["when", "all", index], "must have at most one of `equals`, `equalsSecret` and `absent`");
  });
  if (method === "POST" && couldMatchDelivery(all))
    note(["when", "all"], `could match a delivery. For POST, ${HOW_TO_TELL}`);
}

/** How to tell a handshake from deliveries with the same method. */
export const HOW_TO_TELL =
  "add a header, a query parameter, a body field with `equals`, or one present and one absent field";

/** Returns whether the conditions of a handshake could also match a delivery with the same method. */
export function couldMatchDelivery(all: Handshake["when"]["all"]): boolean {
  const present = all.filter(({ absent }) => absent !== true);
  // A delivery may contain a body field of any name. The presence of a field is therefore only conclusive if another field must be
  // absent.
  const tellsApart = present.some(
    ({ in: where, equals, equalsSecret }) =>
      where !== "body" || equals !== undefined || equalsSecret !== undefined,
  );
  const hasAbsent = present.length > 0 && present.length < all.length;
  return !tellsApart && !hasAbsent;
}

function findWrongPlaces({ requireVerified, captureSecret, visit }: Handshake, note: NoteWrong): void {
  if (captureSecret && requireVerified) {
    note(
      "requireVerified",
      "must be false, because the channel cannot verify requests before the handshake has captured the secret",
    );
  }
  if (visit && !requireVerified) {
    note(
      "visit",
      "needs `requireVerified: true`, because only a verified sender may cause the gateway to call a URL",
    );
  }
}
