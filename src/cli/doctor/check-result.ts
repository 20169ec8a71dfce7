export interface Found {
  readonly check: string;
  readonly state: "ok" | "warning" | "wrong";
  readonly message: string;
  /** Suggested action. Empty if none is needed. */
  readonly suggestedAction: string;
}

export const ok = (check: string, message: string): Found => ({
  check,
  state: "ok",
  message,
  suggestedAction: "",
});
export const warning = (check: string, message: string, suggestedAction: string): Found => ({
  check,
  state: "warning",
  message,
  suggestedAction,
});
export const wrong = (check: string, message: string, suggestedAction: string): Found => ({
  check,
  state: "wrong",
  message,
  suggestedAction,
});
