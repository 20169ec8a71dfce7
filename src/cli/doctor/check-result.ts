export interface Found {
  readonly check: string;
  readonly state: "ok" | "warning" | "wrong";
  readonly message: string;
  /** Suggested action. Empty if none is needed. */
  readonly suggestedAction: string;
}

const finding =
  (state: Found["state"]) =>
  (check: string, message: string, suggestedAction = ""): Found => ({
    check,
    state,
    message,
    suggestedAction,
  });
export const ok = finding("ok");
export const warning = finding("warning");
export const wrong = finding("wrong");
