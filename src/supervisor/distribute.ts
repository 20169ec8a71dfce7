import type { Socket } from "node:net";

/** A process that can take connections. */
export interface Target {
  /** Passes a connection, which the process confirms (`took`). Returns false if the process has just ended. */
  readonly pass: (socket: Socket) => boolean;
}

export interface Distributor {
  readonly take: (socket: Socket) => void;
  /** Adds a process that is not ready yet. It gets connections only while no process is ready. */
  readonly add: (target: Target) => void;
  readonly markReady: (target: Target) => void;
  readonly took: (target: Target) => void;
  /** The process gets no more connections. Others get those that were waiting for it. */
  readonly remove: (target: Target) => void;
}

interface Line {
  readonly target: Target;
  isReady: boolean;
  /** Whether the process has not yet received the last connection that it was passed. */
  isBusy: boolean;
  readonly waiting: Socket[];
  timer: NodeJS.Timeout | undefined;
}

/** Time in ms that a connection waits for a busy process before another process gets it. */
const STALLED_MS = 50;

/**
 * Distributes connections round-robin, so that each process gets the same number even if many arrive at once. Passes one connection at a
 * time to a process. Otherwise, all connections in transit would be lost with a process that is killed.
 *
 * `node:cluster` is not used for two reasons. It closes the port with the last process. If a process is killed, the client of a connection in
 * transit would wait forever.
 *
 * @param takeHomeless takes the connections that arrive or wait while no process runs
 */
export function createDistributor(takeHomeless: (socket: Socket) => void): Distributor {
  const lines: Line[] = [];
  let turn = 0;

  const findLine = (target: Target): Line | undefined => lines.find((line) => line.target === target);

  function take(socket: Socket): void {
    const ready = lines.filter(({ isReady }) => isReady);
    const candidates = ready.length > 0 ? ready : lines;
    const line = candidates[turn++ % candidates.length];
    if (line === undefined) takeHomeless(socket);
    else {
      line.waiting.push(socket);
      passNext(line);
    }
  }

  function passNext(line: Line): void {
    if (line.isBusy) return;
    let socket = line.waiting.shift();
    while (socket?.destroyed) socket = line.waiting.shift();
    if (socket === undefined) return;
    line.isBusy = true;
    line.timer = setTimeout(moveWaiting, STALLED_MS, line).unref();
    // A process that has ended stays busy until the caller removes it.
    if (!line.target.pass(socket)) line.waiting.unshift(socket);
  }

  /** Gives the connections that wait for a stalled process to processes that are free. */
  function moveWaiting(line: Line): void {
    const free = lines.filter(({ isReady, isBusy }) => isReady && !isBusy);
    for (let i = 0; free.length > 0 && line.waiting.length > 0; i++) {
      const socket = line.waiting.shift();
      const other = free[i % free.length];
      if (socket === undefined || other === undefined) return;
      other.waiting.push(socket);
      passNext(other);
    }
    if (line.isBusy) line.timer = setTimeout(moveWaiting, STALLED_MS, line).unref();
  }

  return {
    take,
    add(target) {
      lines.push({ target, isReady: false, isBusy: false, waiting: [], timer: undefined });
    },
    markReady(target) {
      const line = findLine(target);
      if (line !== undefined) line.isReady = true;
    },
    took(target) {
      const line = findLine(target);
      if (line === undefined) return;
      clearTimeout(line.timer);
      line.isBusy = false;
      passNext(line);
    },
    remove(target) {
      const line = findLine(target);
      if (line === undefined) return;
      clearTimeout(line.timer);
      lines.splice(lines.indexOf(line), 1);
      for (const socket of line.waiting) if (!socket.destroyed) take(socket);
    },
  };
}
