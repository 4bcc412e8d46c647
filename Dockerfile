# katha on the CPU:   docker build -t katha .
#                     docker run --rm -v katha-cache:/cache -v "$PWD":/stories --user "$(id -u):$(id -g)" katha run story.txt
FROM python:3.11-slim-bookworm AS build
COPY . /source
RUN pip install --no-cache-dir 'build==1.*' && for part in . sketch; do python -m build --wheel --outdir /wheel "/source/$part" || exit 1; done

FROM python:3.11-slim-bookworm
# The cache may be written by whoever `--user` names, not only by the image's own user.
RUN useradd --create-home --uid 1000 katha && install -d -m 1777 /cache /stories
COPY --from=build /wheel /tmp/wheel
ARG EXTRAS=""
RUN pip install --no-cache-dir "$(echo /tmp/wheel/katha-*.whl)${EXTRAS:+[$EXTRAS]}" /tmp/wheel/katha_sketch-*.whl && rm -r /tmp/wheel
ENV KATHA_CACHE=/cache
VOLUME /cache
WORKDIR /stories
USER 1000
ENTRYPOINT ["katha"]
CMD ["--help"]
