import type { z } from "zod";
import { findWrongName } from "../message/source.ts";
import { compileReply, type WrongReply } from "./reply.ts";
import type { Handshake } from "./settings.ts";

/** For zod: what of a handshake makes no sense, or could take a delivery for itself. */
export function checkHandshake({ value, issues }: z.core.ParsePayload<Handshake>): void {
  const reply = compileReply(value.respond);
  const wrong: readonly WrongReply[] = [
    ...findWrongConditions(value),
    ...findWrongPlaces(value),
    ...(reply.ok ? [] : reply.error.map(({ path, message }) => ({ path: ["respond", ...path], message }))),
  ];
  for (const { path, message } of wrong)
    issues.push({ code: "custom", path: [...path], message, input: value });
}

function findWrongConditions({ when: { method, all } }: Handshake): readonly WrongReply[] {
  const wrong = all.flatMap(({ in: where, name, equals, equalsSecret, absent }, index) => {
    const at = ["when", "all", index];
    const message = findWrongName(where, name);
    const said = [equals, equalsSecret, absent].filter((word) => word !== undefined).length;
    return [
      ...(message === undefined ? [] : [{ path: [...at, "name"], message }]),
      ...(said > 1 ? [{ path: at, message: "takes one of equals, equalsSecret and absent" }] : []),
    ];
  });
  if (method !== "POST") return wrong;
  // A delivery may have a field of any name: that one is there says nothing, unless others are not.
  const tellsApart = all.some(
    ({ in: where, equals, equalsSecret, absent }) =>
      absent !== true && (where !== "body" || equals !== undefined || equalsSecret !== undefined),
  );
  const hasAbsent = all.some(({ absent }) => absent === true) && all.some(({ absent }) => absent !== true);
  if (tellsApart || hasAbsent) return wrong;
  const message =
    "could be a delivery: a POST needs a header or query parameter that is there, a value that equals, or a field that is absent beside one that is there";
  return [...wrong, { path: ["when", "all"], message }];
}

function findWrongPlaces({ requireVerified, captureSecret, visit }: Handshake): readonly WrongReply[] {
  const wrong: WrongReply[] = [];
  for (const [field, place] of Object.entries({ captureSecret, visit })) {
    const message = place && findWrongName(place.in, place.name);
    if (message !== undefined) wrong.push({ path: [field, "name"], message });
  }
  if (captureSecret && requireVerified) {
    const message = "must be false: there is nothing to verify with before the secret is captured";
    wrong.push({ path: ["requireVerified"], message });
  }
  if (visit && !requireVerified) {
    wrong.push({
      path: ["visit"],
      message: "needs `requireVerified`: nobody else may make the gateway call",
    });
  }
  return wrong;
}
