import type { VerifiedDelivery } from "../event/received.ts";
import { readBody } from "./body/bodies.ts";
import type { Fault } from "./fault.ts";
import { ItemReader } from "./item-reader.ts";
import type { PathBudget } from "./paths/path.ts";
import { ITEM_ROOT } from "./profile.ts";
import type { RuleSet } from "./rule-set.ts";

/** Matches the start of a JSON object or array. */
const JSON_START = /^\s*[[{]/;

/**
 * Returns the fault of a text that is not in the declared format, or contains no item. In a stream, such a text is often a heartbeat. It is
 * then `no_match`, so that only the newest are stored. It remains `invalid_body` if a definition selects it by a value outside the text, such as the name of
 * its event. Broken JSON that a definition could have selected remains `invalid_body` too.
 */
export function faultOfText(
  rules: RuleSet,
  delivery: VerifiedDelivery,
  text: string,
  fault: Fault,
  budget: PathBudget,
): Fault {
  const { always, groups, profile } = rules;
  if (profile.hasHeartbeats !== true || fault.reason !== "invalid_body") return fault;
  const outside = groups.filter(({ path }) => path.root !== ITEM_ROOT);
  const readsText = always.length > 0 || outside.length < groups.length;
  if (readsText && JSON_START.test(text)) return fault;
  const body = readBody(delivery.body, "application/octet-stream");
  if (!body.ok) return fault;
  const item = { index: 0, value: undefined, json: undefined, isBody: true };
  const reader = new ItemReader({ delivery, body: body.value, item }, budget);
  const isSelected = outside.some(({ path, byType }) =>
    reader.values(path).some((value) => byType.has(String(value))),
  );
  return isSelected
    ? fault
    : {
        reason: "no_match",
        detail: `no definition selects the event, whose data contains no item: ${fault.detail}`,
        isHeartbeat: true,
      };
}
