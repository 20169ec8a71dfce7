import { chmodSync, rmSync } from "node:fs";
import { createConnection, createServer, type Server } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseJson } from "../event/parse-json.ts";
import { makeSocketDir, removeSocketDir } from "../lib/servers/socket-dir.ts";

const NAME = "supervisor.sock";

/** One line of a response. The last line has `done` or `error`. */
export type ControlLine =
  | { readonly process: number; readonly pid: number | undefined }
  | { readonly done: true }
  | { readonly error: string };

/** Replaces all processes one after another, and yields each new one. @throws Error if a new process does not become ready */
export type Restart = () => AsyncIterable<{ readonly process: number; readonly pid: number | undefined }>;

/**
 * Opens the socket for commands to the supervisor. Only its user can connect to it.
 *
 * @param dataDir absolute path without symbolic links, locked by the caller
 */
export async function openControlSocket(
  dataDir: string,
  { restart }: { readonly restart: Restart },
): Promise<AsyncDisposable> {
  const dir = makeSocketDir(dataDir, NAME);
  const path = join(dir, NAME);
  // A killed supervisor leaves its socket. This supervisor holds the lock, so no other one is using it.
  rmSync(path, { force: true });
  const server: Server = createServer((socket) => {
    socket.on("error", () => {});
    const write = (line: ControlLine): void => void socket.write(`${JSON.stringify(line)}\n`);
    createInterface(socket).once("line", (command) => {
      if (command !== "restart") {
        write({ error: `unknown command ${JSON.stringify(command.slice(0, 40))}` });
        socket.end();
        return;
      }
      void run(restart, write).finally(() => socket.end());
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, resolve);
  });
  chmodSync(path, 0o600);
  return {
    async [Symbol.asyncDispose]() {
      server.close();
      rmSync(path, { force: true });
      removeSocketDir(dir);
    },
  };
}

async function run(restart: Restart, write: (line: ControlLine) => void): Promise<void> {
  try {
    for await (const replaced of restart()) write(replaced);
    write({ done: true });
  } catch (error) {
    write({ error: error instanceof Error ? error.message : String(error) });
  }
}

/**
 * Sends a command to the supervisor of a data directory, and yields the lines of its response.
 *
 * @param dataDir absolute path without symbolic links
 * @throws the system error if no supervisor runs
 */
export async function* sendCommand(
  dataDir: string,
  command: "restart",
  signal: AbortSignal,
): AsyncGenerator<ControlLine> {
  const socket = createConnection({ path: join(makeSocketDir(dataDir, NAME), NAME), signal });
  await new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("error", reject);
  });
  socket.write(`${command}\n`);
  for await (const line of createInterface(socket)) yield parseJson(line) as ControlLine;
}
