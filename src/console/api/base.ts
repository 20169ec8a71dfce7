/** A part of the API's base that is the same wherever the page stands. */
export const API_BASE = "/v1";
