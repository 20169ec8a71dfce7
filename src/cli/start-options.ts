import type { GatewayDeps } from "../gateway.ts";
import type { Io } from "./io.ts";

export interface StartOptions {
  readonly configFile: string | undefined;
  /** Whether this is a process of a supervisor. */
  readonly isSupervised: boolean;
  readonly env: Io["env"];
  /** Timing of the gateway, for tests. Omitted values have their production defaults. */
  readonly timing?: Pick<GatewayDeps, "sourcesTiming" | "handlersTiming">;
  /** Program of the processes that a supervisor starts, for tests. Defaults to `src/main.ts`. */
  readonly program?: URL;
}
