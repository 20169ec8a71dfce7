import { type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { RequestError } from "@hono/node-server";
import { createId } from "../lib/ids.ts";
import { createRepeatedLines } from "../lib/repeated-lines.ts";
import type { Log } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import { closeGently } from "./close-gently.ts";
import { type ErrorResponse, STATUS_OF, toApiError, toErrorBody, toErrorHeaders } from "./errors.ts";
import { COMMON_HEADERS } from "./hook-exchange.ts";

/** A request that was rejected before any route received it. */
export interface InvalidRequest {
  readonly status: number;
  readonly message: string;
  readonly requestId: string;
  readonly clientAddress: string | undefined;
}

export interface InvalidRequestsOptions {
  readonly maxHeaderBytes: number;
  readonly onInvalid: (request: InvalidRequest) => void;
}

/** Creates the function that counts and logs rejected requests. */
export function createInvalidRequestReport({
  metrics,
  log,
}: {
  readonly metrics: Pick<Metrics, "invalidRequests">;
  readonly log: Log;
}): InvalidRequestsOptions["onInvalid"] {
  const noteRepeated = createRepeatedLines();
  return function reportInvalidRequest(request) {
    metrics.invalidRequests.inc({ status: request.status });
    noteRepeated(String(request.status), (count) =>
      log.info({ event: "http.invalid_request", ...request, count }, "request rejected before routing"),
    );
  };
}

interface Rejection {
  readonly status: number;
  readonly error: ErrorResponse;
}

/** Responds to requests that are no valid HTTP, and to those that arrive too slowly or have too large headers. */
export function createInvalidRequests({ maxHeaderBytes, onInvalid }: InvalidRequestsOptions) {
  function note({ status, error }: Rejection, clientAddress: string | undefined) {
    const requestId = createId("req", Date.now());
    onInvalid({ status, message: error.message, requestId, clientAddress });
    const body = JSON.stringify(toErrorBody(error));
    const headers = {
      ...COMMON_HEADERS,
      ...toErrorHeaders(error),
      "content-type": "application/json",
      "content-length": String(Buffer.byteLength(body)),
      "x-request-id": requestId,
    };
    return { status, headers, body };
  }

  /** Writes the response to the socket, because there is no response object. Closes the connection. */
  function rejectConnection(socket: Socket, rejection: Rejection): void {
    const { status, headers, body } = note(rejection, socket.remoteAddress);
    const lines = Object.entries({
      ...headers,
      date: new Date().toUTCString(),
      connection: "close",
    }).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n${body}`);
    closeGently(socket);
  }

  return {
    /**
     * Handles the `clientError` event of a server.
     *
     * @param pending the response in flight on this connection
     */
    rejectUnparsed(
      error: NodeJS.ErrnoException & { readonly reason?: string },
      socket: Socket,
      pending: ServerResponse | undefined,
    ): void {
      const isPartlySent = pending?.headersSent === true && !pending.writableFinished;
      // After an error, the parser reports the rest of the request too.
      if (!socket.writable || isPartlySent) socket.destroy();
      else rejectConnection(socket, toRejection(error, maxHeaderBytes));
    },

    rejectLate: (socket: Socket): void => rejectConnection(socket, TOO_LATE),

    rejectWithout(reason: string, response: ServerResponse, status?: number): void {
      const reply = note(invalid(reason, status), response.socket?.remoteAddress);
      response.writeHead(reply.status, { ...reply.headers, connection: "close" }).end(reply.body);
    },

    /** Returns the response to an error of `@hono/node-server`, which rejects invalid request targets and hosts. */
    toResponse(error: unknown): Response {
      if (!(error instanceof RequestError)) {
        const failed = toApiError(error);
        return Response.json(toErrorBody(failed), { status: STATUS_OF[failed.code] });
      }
      const { status, headers, body } = note(invalid(error.message), undefined);
      return new Response(body, { status, headers });
    },
  };
}

const invalid = (reason: string, status: number = STATUS_OF.invalid_parameters): Rejection => ({
  status,
  error: { code: "invalid_parameters", message: `The request is not valid HTTP: ${reason}.`, headers: {} },
});

const TOO_LATE: Rejection = {
  status: 408,
  error: {
    code: "invalid_parameters",
    message: "The request did not arrive in time. Send it again.",
    headers: {},
  },
};

function toRejection(
  { code, reason }: NodeJS.ErrnoException & { readonly reason?: string },
  maxHeaderBytes: number,
): Rejection {
  switch (code) {
    case "HPE_HEADER_OVERFLOW": {
      const message = `The request line and headers are larger than ${maxHeaderBytes} bytes. Send fewer or shorter headers.`;
      return { status: 431, error: { code: "payload_too_large", message, headers: {} } };
    }
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW": {
      const message = "The chunk extensions of the body are too large. Send the body without them.";
      return { status: 413, error: { code: "payload_too_large", message, headers: {} } };
    }
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return TOO_LATE;
    default:
      return invalid(reason ?? "it cannot be parsed");
  }
}
