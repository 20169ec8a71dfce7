import { inject } from "vitest";

declare module "vitest" {
  export interface ProvidedContext {
    /** Port of the broker that assigns databases on the run's servers. */
    serverBroker: number;
  }
}

/** A database of the run's Redis. */
export interface RedisDatabase {
  readonly socketPath: string;
  readonly database: number;
}

/** Sends a request to the broker of the run's servers (`servers.ts`). */
export async function askBroker<T>(method: "GET" | "DELETE", path: string): Promise<T> {
  const response = await fetch(`http://127.0.0.1:${inject("serverBroker")}${path}`, { method });
  if (!response.ok) throw new Error(await response.text());
  return (await response.json()) as T;
}
