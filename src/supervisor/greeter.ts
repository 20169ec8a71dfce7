/** A process that can greet the operator. */
export interface Candidate {
  /** Resolves when the process has ended. */
  readonly exited: Promise<unknown>;
  readonly send: (message: { readonly type: "greet" }) => void;
}

export interface Greeter {
  /** Asks a candidate to greet, unless a process is greeting or has greeted. */
  readonly greet: () => void;
  /** Ends the greeting, because this process has confirmed it. */
  readonly confirm: (by: Candidate) => void;
  /** Asks no more processes. */
  readonly stop: () => void;
}

/**
 * Lets one process greet the operator. If that process ends before it confirms, another one greets, because the greeting may contain the
 * first API key. The operator sees two greetings if a process is killed between printing and confirming.
 *
 * @param findCandidate returns a process that can greet. Must not return one that has ended.
 */
export function createGreeter(findCandidate: () => Candidate | undefined): Greeter {
  let current: Candidate | undefined;
  let isStopped = false;

  function greet(): void {
    if (isStopped || current !== undefined) return;
    const candidate = findCandidate();
    if (candidate === undefined) return;
    current = candidate;
    candidate.send({ type: "greet" });
    void candidate.exited.then(() => {
      current = undefined;
      greet();
    });
  }

  const stop = (): void => {
    isStopped = true;
  };
  return {
    greet,
    confirm(by) {
      if (by === current) stop();
    },
    stop,
  };
}
