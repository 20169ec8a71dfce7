import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { API_KEY } from "../support/gateway-process.ts";

/** Generations of the protocol: `legacy` starts with `initialize`, `modern` sends every request on its own (2026-07-28). */
export const GENERATIONS = ["legacy", "modern"] as const;
export type Generation = (typeof GENERATIONS)[number];

/** Connects the official client to the MCP server of a gateway. */
export async function connectAgent(
  { origin }: { readonly origin: string },
  {
    token = API_KEY,
    generation = "modern",
  }: { readonly token?: string; readonly generation?: Generation } = {},
): Promise<Client> {
  const client = new Client(
    { name: "test", version: "1" },
    { versionNegotiation: { mode: generation === "modern" ? { pin: "2026-07-28" } : "legacy" } },
  );
  await client.connect(
    new StreamableHTTPClientTransport(new URL("/mcp", origin), {
      requestInit: { headers: { authorization: `Bearer ${token}` } },
    }),
  );
  return client;
}
