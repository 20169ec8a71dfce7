import { checkPlan } from "./check-plan.ts";
import { compilePlan } from "./plan.ts";
import { pollingObject } from "./settings-shape.ts";

/** The whole `config` of a polling channel: what each setting allows, and all together do not, is refused here. */
export const pollingSettings = pollingObject
  .superRefine((settings, context) => {
    const plan = compilePlan(settings);
    for (const { path, message } of plan.ok ? checkPlan(plan.value) : plan.error) {
      context.addIssue({ code: "custom", path: path.split("."), message });
    }
  })
  .describe("Inlet calls an address at an interval and finds out what is new.");
