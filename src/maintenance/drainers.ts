import { type HoldDrainerDeps, startHoldDrainer } from "./hold-drainer.ts";
import { type PauseDrainerDeps, startPauseDrainer } from "./pause-drainer.ts";

/** Starts the workers that publish buffered deliveries: those of ended pauses, and those that intakes hold for route keys. */
export function startDrainers(deps: PauseDrainerDeps & HoldDrainerDeps): AsyncDisposable {
  const started = new AsyncDisposableStack();
  started.use(startPauseDrainer(deps));
  started.use(startHoldDrainer(deps));
  return started;
}
