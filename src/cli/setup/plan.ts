import type { Finding } from "../../lib/errors.ts";

/** An organization as it is found: under its declared name. */
export interface Organization {
  readonly id: string;
  readonly name: string;
}

type StepAction = "create" | "update" | "unchanged" | "unmanaged";

/** The action on one object. */
export interface Step {
  readonly action: StepAction;
  /** `channel hooks of github in acme` */
  readonly object: string;
  /** Fields that an update changes; secrets are marked, no value is told. */
  readonly fields?: readonly string[];
}

/** An object that cannot be brought to what the file says; nothing of it was changed. */
export class SetUpConflict extends Error {
  override readonly name = "SetUpConflict";
}

/** Actions to be done, or done, in order. */
export interface Report {
  readonly steps: readonly Step[];
  /** Conflicts; `path` names the object. */
  readonly conflicts: readonly Finding[];
}

const MARKS: Readonly<Record<StepAction, string>> = {
  create: "+",
  update: "~",
  unchanged: "=",
  unmanaged: ".",
};

/** One line per object, then the sum of it. */
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
