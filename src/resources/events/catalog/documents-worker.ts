/** Entry point of the worker thread that creates documents about event types. */
import { parentPort } from "node:worker_threads";
import { TypesTooLongError } from "../../../lib/json-schema/typescript/write-types.ts";
import { goBehindOtherThreads } from "../../../lib/thread-priority.ts";
import { createAsyncApi } from "./asyncapi.ts";
import type { EventType } from "./event-types.ts";
import { writeTypesFile } from "./types-file.ts";

export type DocumentRequest =
  | {
      readonly kind: "asyncapi";
      readonly app: { readonly uid: string; readonly title: string };
      readonly types: readonly EventType[];
    }
  | { readonly kind: "types"; readonly appUid: string; readonly types: readonly EventType[] };

export type DocumentAnswer =
  | { readonly kind: "written"; readonly text: string }
  | { readonly kind: "tooLong" };

function answer(request: DocumentRequest): DocumentAnswer {
  const { types } = request;
  if (request.kind === "asyncapi")
    return { kind: "written", text: JSON.stringify(createAsyncApi(request.app, types)) };
  try {
    return { kind: "written", text: writeTypesFile(request.appUid, types) };
  } catch (error) {
    if (error instanceof TypesTooLongError) return { kind: "tooLong" };
    throw error;
  }
}

if (!parentPort) throw new Error("documents-worker.ts runs as a worker thread");
const port = parentPort;
goBehindOtherThreads();
port.on("message", (request: DocumentRequest) => port.postMessage(answer(request)));
port.postMessage({ kind: "ready" });
