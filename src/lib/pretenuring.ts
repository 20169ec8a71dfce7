import { setFlagsFromString } from "node:v8";

/**
 * Ends V8's pretenuring: objects of a place in the code where nearly all outlived a collection are made in old memory from then on.
 * A gateway's do while it starts and warms up, and never again: later each is garbage after milliseconds, but in old memory it is taken
 * for alive until all memory is collected, and so is what it refers to. Of 50 MiB a collection of young memory freed 10 then, in several times
 * the time, and all memory was collected every second or two; in some processes, as V8 decides once in each. To be called before
 * there is load.
 */
export function endPretenuring(): void {
  setFlagsFromString("--no-allocation-site-pretenuring");
}
