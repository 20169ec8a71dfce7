import type { Finding } from "../../lib/errors.ts";

/** An organization, with the name that the config file uses for it. */
export interface Organization {
  readonly id: string;
  readonly name: string;
}

type StepAction = "create" | "update" | "unchanged" | "unmanaged";

/** One object of a plan, with the action for this object. */
export interface Step {
  readonly action: StepAction;
  /** Description of the object in the plan, such as `channel hooks of github in acme`. */
  readonly object: string;
  /** Names of the fields that an update changes. Secret fields are marked, and values are never included. */
  readonly fields?: readonly string[];
}

/** Thrown when an object cannot be updated to match the config file. The object then remains unchanged. */
export class SetUpConflict extends Error {
  override readonly name = "SetUpConflict";
}

/** Planned or completed steps in order, and conflicts. */
export interface Report {
  readonly steps: readonly Step[];
  /** Objects that cannot be updated. The `path` of each error names the object. */
  readonly conflicts: readonly Finding[];
}

const MARKS: Readonly<Record<StepAction, string>> = {
  create: "+",
  update: "~",
  unchanged: "=",
  unmanaged: ".",
};

/** Formats a plan: one line per object, followed by the number of objects per action. */
export function renderSteps(steps: readonly Step[]): string {
  const lines = steps.map(({ action, object, fields = [] }) => {
    const what = fields.length > 0 ? `: ${fields.join(", ")}` : "";
    return `  ${MARKS[action]} ${action.padEnd(10)} ${object}${what}\n`;
  });
  const sum = (Object.keys(MARKS) as StepAction[])
    .map((action) => `${steps.filter((step) => step.action === action).length} ${action}`)
    .join(", ");
  return `${lines.join("")}${sum}\n`;
}

export const isChange = ({ action }: Step): boolean => action === "create" || action === "update";

export const renderFindings = (findings: readonly Finding[]): string =>
  findings.map(({ path, message }) => `  ${path === "" ? "the file" : path}: ${message}\n`).join("");
