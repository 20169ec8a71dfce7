import { inject } from "vitest";

declare module "vitest" {
  export interface ProvidedContext {
    /** Port of the broker that hands out what the run's servers have. */
    serverBroker: number;
  }
}

/** One of the run's Redis. */
export interface RedisDatabase {
  readonly socketPath: string;
  readonly database: number;
}

/** Asks the broker of the run's servers (`servers.ts`). */
export async function askBroker<T>(method: "GET" | "DELETE", path: string): Promise<T> {
  const response = await fetch(`http://127.0.0.1:${inject("serverBroker")}${path}`, { method });
  if (!response.ok) throw new Error(await response.text());
  return (await response.json()) as T;
}
