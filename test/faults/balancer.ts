import { Agent, request } from "node:http";

/** Load balancer that sends each request to a server whose last `/readyz` check succeeded. Never retries a request. */
export interface Balancer extends Disposable {
  /** Resolves with the response status, or with the message of a connection error. */
  readonly post: (path: string, body: string) => Promise<number | string>;
  readonly healthy: () => readonly string[];
}

export interface BalancerOptions {
  readonly origins: readonly string[];
  readonly checkEveryMs: number;
  readonly keepAlive: boolean;
}

export function startBalancer({ origins, checkEveryMs, keepAlive }: BalancerOptions): Balancer {
  const agent = new Agent({ keepAlive });
  const ready = new Set<string>();
  let turn = 0;

  async function check(origin: string): Promise<void> {
    const signal = AbortSignal.timeout(checkEveryMs);
    const isReady = await fetch(`${origin}/readyz`, { signal }).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isReady) ready.add(origin);
    else ready.delete(origin);
  }
  const timer = setInterval(() => void Promise.all(origins.map(check)), checkEveryMs);

  return {
    healthy: () => [...ready],
    async post(path, body) {
      const targets = [...ready];
      const origin = targets[turn++ % Math.max(1, targets.length)];
      if (origin === undefined) return "no server is ready";
      return new Promise((resolve) => {
        const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
        const call = request(`${origin}${path}`, { method: "POST", agent, headers }, (response) => {
          response.resume();
          response.on("end", () => resolve(response.statusCode ?? 0));
          response.on("error", ({ message }) => resolve(message));
        });
        call.on("error", ({ message }) => resolve(message));
        call.end(body);
      });
    },
    [Symbol.dispose]() {
      clearInterval(timer);
      agent.destroy();
    },
  };
}
