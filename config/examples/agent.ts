// Asks Inlet for its open problems over the Model Context Protocol, as an AI agent does.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const { INLET_URL = "http://127.0.0.1:8080", INLET_API_KEY = "" } = process.env;
const client = new Client({ name: "example-agent", version: "1.0.0" });
const authorization = `Bearer ${INLET_API_KEY}`;
await client.connect(
  new StreamableHTTPClientTransport(new URL("/mcp", INLET_URL), {
    requestInit: { headers: { authorization } },
  }),
);

const { tools } = await client.listTools();
console.log("tools:", tools.map(({ name }) => name).join(", "));
const { content } = await client.callTool({ name: "list_problems", arguments: {} });
for (const part of content) if (part.type === "text") console.log(part.text);
await client.close();
