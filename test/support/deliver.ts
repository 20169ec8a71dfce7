import { expect } from "vitest";

/**
 * Sends a delivery to a channel's address, which must accept it.
 *
 * @param body an object is sent as JSON
 */
export async function deliver(
  address: string,
  body: object | string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const response = await fetch(address, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  expect(response.status).toBe(200);
  return response;
}
