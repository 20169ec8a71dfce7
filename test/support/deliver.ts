import { expect } from "vitest";
import { until } from "./until.ts";

/**
 * Sends to a channel's address until that accepts it, as senders do that are told to come again: on a busy machine a large body may be
 * too late.
 *
 * @param body an object is sent as JSON
 * @throws what `expect` does, where it is refused
 */
export async function deliver(
  address: string,
  body: object | string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const request = {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  };
  let response: Response | undefined;
  await until(
    async () => {
      await response?.body?.cancel();
      response = await fetch(address, request);
      return response.status !== 503;
    },
    { everyMs: 1_000 },
  );
  expect(response?.status).toBe(200);
  return response as Response;
}
