# The server, in two stages: what builds it stays behind. Run it as `docker run … serve`.
#
# Another base, or a wheelhouse instead of an index, by build arguments. A tag can be moved to another
# image afterwards, a digest cannot: `docker buildx imagetools inspect` shows that of a newer base.
#   --build-arg BASE=registry.example.org/python:3.11-slim@sha256:…
#   --build-arg PIP_ARGUMENTS="--no-index --find-links /wheels"
ARG BASE=docker.io/library/python:3.11.14-slim-bookworm@sha256:65a93d69fa75478d554f4ad27c85c1e69fa184956261b4301ebaf6dbb0a3543d

# hadolint ignore=DL3006
FROM ${BASE} AS build
ARG PIP_ARGUMENTS=""
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /src
# binutils takes the debugging symbols out of OpenDP's library: 107 MB of 275.
# hadolint ignore=DL3008
RUN python3 -m venv /opt/discreet \
    && { command -v strip || { apt-get update && apt-get install --yes --no-install-recommends binutils \
         && rm -rf /var/lib/apt/lists/*; }; }
# The dependencies first: they change less often than the service does. Every file is held against
# its hash, and what builds the service has an environment of its own, which stays behind.
COPY deploy/image deploy/image
# hadolint ignore=SC2086,DL3013,DL3042
RUN python3 -m venv /opt/build \
    && /opt/build/bin/pip install --quiet ${PIP_ARGUMENTS} --require-hashes -r deploy/image/build.lock \
    && /opt/discreet/bin/pip install --quiet ${PIP_ARGUMENTS} --no-deps --require-hashes \
         -r deploy/image/service.lock
COPY pyproject.toml README.md LICENSE ./
COPY service service
# The list of everything in it (CycloneDX) stands in the image: /opt/discreet/sbom.cdx.json.
RUN /opt/build/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir /opt/build/wheels . \
    && /opt/discreet/bin/pip install --quiet --no-index --no-deps /opt/build/wheels/*.whl \
    && /opt/discreet/bin/pip uninstall --quiet --yes setuptools pip \
    && /opt/build/bin/cyclonedx-py environment --of JSON -o /opt/discreet/sbom.cdx.json \
         --pyproject pyproject.toml --mc-type application /opt/discreet/bin/python \
    && rm -rf /opt/discreet/lib/python3*/site-packages/scipy/*/tests \
           /opt/discreet/lib/python3*/site-packages/numpy/tests \
           /opt/discreet/lib/python3*/site-packages/numpy/*/tests \
           /opt/discreet/lib/python3*/site-packages/implicit/gpu/_cuda*.so \
    && strip --strip-unneeded /opt/discreet/lib/python3*/site-packages/opendp/lib/*.so \
    && /opt/discreet/bin/python -m compileall -q /opt/discreet/lib \
    && /opt/discreet/bin/discreet --version

# hadolint ignore=DL3006
FROM ${BASE}
LABEL org.opencontainers.image.title="Discreet" \
      org.opencontainers.image.description="Recommendations that learn online and prove how little they give away" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/discreet /opt/discreet
# Numbers, so that Kubernetes can see that this is not root without asking the image.
RUN mkdir /data && chown 10001:10001 /data
USER 10001:10001
WORKDIR /tmp
ENV PATH=/opt/discreet/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    DISCREET_HOST=0.0.0.0 \
    DISCREET_DATA_DIR=/data
# The embedded store, for those who name no other. /tmp has to be writable as well.
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python3", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ.get('DISCREET_PORT', '8000') + '/health/live', timeout=4)"]
ENTRYPOINT ["discreet"]
CMD ["serve"]
