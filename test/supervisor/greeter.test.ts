import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import { type Candidate, createGreeter } from "../../src/supervisor/greeter.ts";

interface Process extends Candidate {
  readonly messages: string[];
  readonly end: () => Promise<void>;
}

/** Starts processes that are ready, and a greeter that chooses the first one that runs. */
function startProcesses(count: number) {
  const running: Process[] = [];
  const processes = Array.from({ length: count }, () => {
    const { promise: exited, resolve } = Promise.withResolvers<void>();
    const messages: string[] = [];
    const process: Process = {
      exited,
      messages,
      send: ({ type }) => void messages.push(type),
      async end() {
        running.splice(running.indexOf(process), 1);
        resolve();
        await nextTurn();
      },
    };
    running.push(process);
    return process;
  });
  const greeter = createGreeter(() => running[0]);
  const asked = () => processes.map(({ messages }) => messages.length);
  return { processes, greeter, asked };
}

it("asks one process to greet, and no other one after it has confirmed", async () => {
  const { processes, greeter, asked } = startProcesses(2);
  const [first] = processes as [Process];
  greeter.greet();
  greeter.greet();
  expect(asked()).toEqual([1, 0]);
  greeter.confirm(first);
  await first.end();
  greeter.greet();
  expect(asked()).toEqual([1, 0]);
});

it("asks another process each time that the greeting process ends before it has confirmed", async () => {
  const { processes, greeter, asked } = startProcesses(3);
  const [first, second, third] = processes as [Process, Process, Process];
  greeter.greet();
  await first.end();
  expect(asked()).toEqual([1, 1, 0]);
  greeter.confirm(third);
  await second.end();
  expect(asked()).toEqual([1, 1, 1]);
});

it("waits for a process that can greet", () => {
  const { processes, asked } = startProcesses(1);
  const ready: Process[] = [];
  const greeter = createGreeter(() => ready[0]);
  greeter.greet();
  expect(asked()).toEqual([0]);
  ready.push(...processes);
  greeter.greet();
  expect(asked()).toEqual([1]);
});

it("asks no process after a stop, although the greeting process ends", async () => {
  const { processes, greeter, asked } = startProcesses(2);
  const [first] = processes as [Process];
  greeter.greet();
  greeter.stop();
  await first.end();
  expect(asked()).toEqual([1, 0]);
});
