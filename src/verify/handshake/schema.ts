import { checkSettings, type NoteWrong } from "../../lib/check-settings.ts";
import { compileReply } from "./reply.ts";
import { type Handshake, handshakeShape } from "./settings.ts";

/** A request that is no delivery: what it looks like, and what it is answered. */
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
  .describe("A request that is answered and is no delivery.");

/** Conditions that make no sense, or could take a delivery for a handshake. */
function findWrongConditions({ when: { method, all } }: Handshake, note: NoteWrong): void {
  all.forEach(({ equals, equalsSecret, absent }, index) => {
    const said = [equals, equalsSecret, absent].filter((word) => word !== undefined).length;
    if (said > 1) note(["when", "all", index], "takes one of equals, equalsSecret and absent");
  });
  if (method !== "POST") return;
  const present = all.filter(({ absent }) => absent !== true);
  // A delivery may have a field of any name: that one is there says nothing, unless others are not.
  const tellsApart = present.some(
    ({ in: where, equals, equalsSecret }) =>
      where !== "body" || equals !== undefined || equalsSecret !== undefined,
  );
  const hasAbsent = present.length > 0 && present.length < all.length;
  if (tellsApart || hasAbsent) return;
  note(
    ["when", "all"],
    "could be a delivery: a POST needs a header or query parameter that is there, a value that equals, or a field that is absent beside one that is there",
  );
}

function findWrongPlaces({ requireVerified, captureSecret, visit }: Handshake, note: NoteWrong): void {
  if (captureSecret && requireVerified) {
    note("requireVerified", "must be false: there is nothing to verify with before the secret is captured");
  }
  if (visit && !requireVerified) {
    note("visit", "needs `requireVerified`: nobody else may make the gateway call");
  }
}
