import { useEffect, useState } from "preact/hooks";
import { type ApiError, type ErrorDetail, isAbort, toApiError } from "../../api/api-error.ts";
import { send } from "../../api/client.ts";

const TYPING_MS = 450;

/** Definitions to preview. */
export interface PreviewProps {
  readonly appId: string;
  readonly channelUid: string;
  readonly events: readonly unknown[] | undefined;
  readonly onErrors: (errors: readonly ErrorDetail[]) => void;
}

interface Tried<T> {
  readonly result: T | undefined;
  readonly error: ApiError | undefined;
}

/** Hook that requests a preview after the user stops typing. A new request cancels the previous one. */
export function useTried<T>(
  path: string,
  body: object | undefined,
  onErrors: (errors: readonly ErrorDetail[]) => void,
): Tried<T> {
  const [tried, setTried] = useState<Tried<T>>({ result: undefined, error: undefined });
  const key = JSON.stringify(body);
  useEffect(() => {
    if (body === undefined) return undefined;
    const aborting = new AbortController();
    const timer = setTimeout(() => {
      send<T>("POST", path, { body, signal: aborting.signal }).then(
        (result) => {
          setTried({ result, error: undefined });
          onErrors([]);
        },
        (error: unknown) => {
          if (isAbort(error)) return;
          const failed = toApiError(error);
          setTried(({ result }) => ({ result, error: failed }));
          onErrors(failed.details);
        },
      );
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
      aborting.abort();
    };
  }, [path, key]);
  return tried;
}
