/** Who calls the management API: taken from the token, and from nothing else. */
export interface Caller {
  readonly keyId: string;
  readonly accountId: string;
  readonly organizationId: string;
  /** The space that an operation falls in where it names none. */
  readonly defaultSpaceId: string | null;
  readonly permissions: ReadonlySet<string>;
}

/** What every request carries. */
export interface RequestEnv {
  Variables: { requestId: string };
}

/** What a request of the management API carries once it is authenticated. */
export interface ApiEnv {
  Variables: RequestEnv["Variables"] & { caller: Caller };
}
