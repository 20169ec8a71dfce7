import type { Caller } from "../http/context.ts";
import type { CallApi } from "./call-tool.ts";
import type { ObservedBody } from "./observed-body.ts";

/** The caller of one MCP request, and its access to the management API. */
export interface McpSession {
  readonly caller: Caller;
  readonly callApi: CallApi;
  /** Returns whether the caller's token is still valid and has this permission. */
  readonly stillAllowed: (permission: string) => Promise<boolean>;
}

/** An MCP request in progress. */
export interface McpExchange extends McpSession {
  /** Body of the response. `undefined` until the response starts. */
  body: ObservedBody | undefined;
}

/** Creates an error response of the MCP SDK. */
export type CreateError = (code: number, message: string, data?: unknown) => Error;
