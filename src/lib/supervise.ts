/** What a supervised server is doing; `/readyz` is true only while all are `ready`. */
export type ServerStatus =
  | { readonly state: "starting" }
  | { readonly state: "ready"; readonly pid: number; readonly adopted: boolean }
  | { readonly state: "restarting"; readonly reason: string; readonly attempt: number }
  | { readonly state: "stopping" }
  | { readonly state: "stopped" };

/** A running server process; disposing it stops it gracefully. */
export interface SupervisedServer extends AsyncDisposable {
  readonly status: ServerStatus;
}
