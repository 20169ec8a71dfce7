/** What one look has found. */
export interface Found {
  readonly check: string;
  readonly state: "ok" | "warning" | "wrong";
  readonly message: string;
  /** What to do about it; empty where nothing is to be done. */
  readonly cure: string;
}

export const ok = (check: string, message: string): Found => ({ check, state: "ok", message, cure: "" });
export const warning = (check: string, message: string, cure: string): Found => ({
  check,
  state: "warning",
  message,
  cure,
});
export const wrong = (check: string, message: string, cure: string): Found => ({
  check,
  state: "wrong",
  message,
  cure,
});
