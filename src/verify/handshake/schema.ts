import { checkSettings, type NoteWrong } from "../../lib/check-settings.ts";
import { compileReply } from "./reply.ts";
import { type Handshake, handshakeShape } from "./settings.ts";

export const handshakeSchema = handshakeShape
  .check(
    checkSettings((handshake, note) => {
      findWrongConditions(handshake, note);
      findWrongPlaces(handshake, note);
      const reply = compileReply(handshake.respond);
      if (reply.ok) return;
      for (const { path, message } of reply.error) note(["respond", ...path], message);
    }),
  )
  .describe("A setup request that is not a delivery, and the response to it.");

/** Finds conditions that contradict each other, and handshakes that a delivery could match. */
function findWrongConditions({ when: { method, all } }: Handshake, note: NoteWrong): void {
  all.forEach(({ equals, equalsSecret, absent }, index) => {
    const said = [equals, equalsSecret, absent].filter((word) => word !== undefined).length;
    if (said > 1) note(["when", "all", index], "must have only one of equals, equalsSecret and absent");
  });
  if (method !== "POST") return;
  const present = all.filter(({ absent }) => absent !== true);
  // A delivery can contain a body field of any name. The presence of a field is therefore only conclusive if another field
  // must be absent.
  const tellsApart = present.some(
    ({ in: where, equals, equalsSecret }) =>
      where !== "body" || equals !== undefined || equalsSecret !== undefined,
  );
  const hasAbsent = present.length > 0 && present.length < all.length;
  if (tellsApart || hasAbsent) return;
  note(
    ["when", "all"],
    "could match a delivery. A POST needs a header, a query parameter, a field with `equals`, or one present and one absent field",
  );
}

function findWrongPlaces({ requireVerified, captureSecret, visit }: Handshake, note: NoteWrong): void {
  if (captureSecret && requireVerified) {
    note(
      "requireVerified",
      "must be false: the channel cannot verify anything before it has captured the secret",
    );
  }
  if (visit && !requireVerified) {
    note("visit", "needs `requireVerified`: only a verified sender may cause the gateway to call a URL");
  }
}
